package intake

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxFront bounds a front matter, in bytes.
const maxFront = 64 << 10

// plan is what the front matter says that is used.
type plan struct {
	prefix string   // of tokens, "" for none
	files  []string // nil: it does not say
}

func (p plan) token(position int) string {
	return tokenOf(strings.TrimPrefix(p.prefix+"-"+strconv.Itoa(position), "-"))
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+): `)
	phaseName = regexp.MustCompile(`^(\d+(?:\.\d+)*)(?:-.*)?$`)
	planName  = regexp.MustCompile(`^(.+)-PLAN\.md$`)
)

// frontMatter reads the front matter of a plan, which begins in line 2.
func frontMatter(s *sheet, head, name string) plan {
	var p plan
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	if m := planName.FindStringSubmatch(base); m != nil {
		p.prefix = m[1]
	}
	if head == "" {
		return p
	}
	if len(head) > maxFront {
		s.invalid(1, "the front matter has %d bytes, more than %d", len(head), maxFront)
		return p
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("\n"+head), &doc); err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		s.invalid(lineOf(text, strings.Count(head, "\n")+1), "the front matter is no YAML: %s", yamlLine.ReplaceAllString(text, ""))
		return p
	}
	if len(doc.Content) == 0 {
		return p
	}
	if top := doc.Content[0]; top.Kind != yaml.MappingNode {
		s.invalid(top.Line, "the front matter should be a mapping such as phase: 01-base")
	} else {
		p.read(s, top)
	}
	return p
}

// lineOf is the line that YAML complains of, within the front matter.
func lineOf(complaint string, last int) int {
	m := yamlLine.FindStringSubmatch(complaint)
	if m == nil {
		return 1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return last
	}
	return max(1, min(n, last))
}

// read takes what is used from the entries, and warns of the rest.
func (p *plan) read(s *sheet, top *yaml.Node) {
	phase, number := "", ""
	var seen []string
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if slices.Contains(seen, key.Value) {
			s.find(hub.FindKeyDuplicate, key.Line, nil, "%.64q is there twice in the front matter", key.Value)
			continue
		}
		seen = append(seen, key.Value)
		switch key.Value {
		case "phase":
			phase = scalar(s, key, value)
		case "plan":
			number = scalar(s, key, value)
		case "files_modified":
			p.files = list(s, key, value)
		default:
			if saysNothing(key.Value, value) {
				continue
			}
			why := ""
			if key.Value == "depends_on" {
				why = ": no other plan is waited for"
			}
			s.skipped(key.Line, nil, "%.64q of the front matter is not imported%s", key.Value, why)
		}
	}
	p.name(phase, number)
}

// name makes the prefix of tokens of what the plan says, if it says all.
func (p *plan) name(phase, number string) {
	if m := phaseName.FindStringSubmatch(phase); m != nil {
		phase = m[1]
	}
	switch {
	case number == "":
	case phase == "" || number == phase || strings.HasPrefix(number, phase+"-"):
		p.prefix = number
	default:
		p.prefix = phase + "-" + number
	}
}

// saysNothing reports whether an entry has the value that is meant without it.
func saysNothing(key string, value *yaml.Node) bool {
	switch value.Kind {
	case yaml.SequenceNode:
		return len(value.Content) == 0
	case yaml.MappingNode:
		for i := 1; i < len(value.Content); i += 2 {
			if !saysNothing("", value.Content[i]) {
				return false
			}
		}
		return true
	case yaml.ScalarNode:
		return value.Tag == "!!null" || key == "autonomous" && value.Value == "true" || key == "type" && value.Value == "execute"
	}
	return false
}

func scalar(s *sheet, key, value *yaml.Node) string {
	if value.Kind != yaml.ScalarNode {
		s.find(hub.FindValueInvalid, value.Line, nil, "%.64s should be a number or a word", key.Value)
		return ""
	}
	if value.Tag == "!!null" {
		return ""
	}
	return value.Value
}

// list reads a list of texts, nil for null.
func list(s *sheet, key, value *yaml.Node) []string {
	if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		s.find(hub.FindValueInvalid, value.Line, nil, "%.64s should be a list of texts", key.Value)
		return nil
	}
	out := []string{}
	for _, entry := range value.Content {
		if entry.Kind != yaml.ScalarNode || entry.Tag == "!!null" {
			s.find(hub.FindValueInvalid, entry.Line, nil, "an entry of %.64s should be text", key.Value)
			continue
		}
		out = append(out, entry.Value)
	}
	return out
}
