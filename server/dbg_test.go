package server
import ("testing";"encoding/json";"github.com/getkin/kin-openapi/openapi3";"github.com/wavehub/wavehub/openapi/api";"github.com/santhosh-tekuri/jsonschema/v6")
func TestDbg(t *testing.T){
 doc,_:=api.GetSpec()
 t.Log(doc.OpenAPI, doc.IsOpenAPI31OrLater())
 s:=doc.Components.Schemas["CheckResult"].Value
 raw,_:=json.Marshal(s)
 t.Log(string(raw)[:600])
 var v any
 json.Unmarshal(raw,&v)
 c:=jsonschema.NewCompiler(); c.DefaultDraft(jsonschema.Draft2020); c.AddResource("https://example.com/x.json",v)
 _,err:=c.Compile("https://example.com/x.json"); t.Log(err)
 _ = openapi3.EnableJSONSchema2020
}
