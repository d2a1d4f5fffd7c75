package server

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// TestEveryCodeIsAnsweredAsTheCatalogueSays: the code of an error decides
// status, title and retry, and the hint of one that has none.
func TestEveryCodeIsAnsweredAsTheCatalogueSays(t *testing.T) {
	var refuse error
	w := newWorld(t, func(c *Config) { c.Ready = func() error { return refuse } })
	answer := func(err error) response {
		refuse = err
		return send(t, w.server.API(), request{method: "GET", path: "/readyz"})
	}
	spec, err := api.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	codes := spec.Components.Schemas["ErrorCode"].Value.Enum
	if len(codes) < 80 {
		t.Fatalf("the document has %d codes only", len(codes))
	}
	for _, name := range codes {
		code := hub.Code(name.(string))
		info := code.Info()
		got := answer(hub.Errorf(code, "what was wrong"))
		if !code.Known() || got.status != info.Status || got.at("status") != float64(info.Status) || got.code() != string(code) ||
			got.text("retry") != info.Retry || got.text("title") != info.Title || got.text("hint") != info.Next {
			t.Errorf("%s: %d %s", code, got.status, got.raw)
		}
	}
	own := hub.Errorf(hub.CodeNameTaken, "it is")
	own.Hint = "use it"
	if got := answer(own); got.text("hint") != "use it" {
		t.Errorf("a hint of its own: %s", got.raw)
	}
	if got := answer(hub.Errorf(hub.CodeListenFailed, "never sent")); got.code() != "internal" {
		t.Errorf("a code without a status: %s", got.raw)
	}
}
