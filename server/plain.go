package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/wavehub/wavehub/internal/hub"
)

// plainText refuses text that no field may hold: a NUL, which nothing that
// people read shows. What the schema leaves free is JSON and kept as it is.
func plainText(path []string, value any, s *openapi3.Schema) error {
	switch v := value.(type) {
	case string:
		if s.Type != nil && strings.ContainsRune(v, 0) {
			return hub.Invalid(fieldName(path), "must not hold a NUL character")
		}
	case []any:
		for i := 0; i < len(v) && s.Items != nil; i++ {
			if err := plainText(append(slices.Clone(path), strconv.Itoa(i)), v[i], s.Items.Value); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, field := range v {
			if p := s.Properties[name]; p != nil {
				if err := plainText(append(slices.Clone(path), name), field, p.Value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// plainParameters refuses the same in paths and queries, and what is no UTF-8.
func plainParameters(path map[string]string, query url.Values) error {
	for name, v := range path {
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return hub.Invalid(name, "must be UTF-8 without NUL characters")
		}
	}
	for name, vs := range query {
		if v := strings.Join(vs, ""); !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return hub.Invalid(name, "must be UTF-8 without NUL characters")
		}
	}
	return nil
}
