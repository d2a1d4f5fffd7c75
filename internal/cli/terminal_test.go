package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestUnseen(t *testing.T) {
	numbered := func(from, to int, more ...string) (out []string) {
		for i := from; i <= to; i++ {
			out = append(out, fmt.Sprint("line ", i))
		}
		return append(out, more...)
	}
	for name, c := range map[string]struct{ before, now, want []string }{
		"first":                              {nil, numbered(1, 2), numbered(1, 2)},
		"nothing":                            {numbered(1, 5), numbered(1, 5), nil},
		"more":                               {numbered(1, 5), numbered(1, 7), numbered(6, 7)},
		"a line goes on":                     {numbered(1, 5, "$ "), numbered(1, 5, "$ ls", "a"), []string{"$ ls", "a"}},
		"the screen moved":                   {numbered(1, 9), numbered(4, 12), numbered(10, 12)},
		"it moved and the last line changed": {numbered(1, 9, "50%"), numbered(3, 9, "100%", "done"), []string{"100%", "done"}},
		"redrawn":                            {numbered(1, 3), []string{"line 1", "x", "line 3"}, []string{"x", "line 3"}},
		"cleared":                            {numbered(1, 3), nil, nil},
		"all is new":                         {numbered(1, 9), numbered(50, 58), numbered(50, 58)},
	} {
		if got := unseen(c.before, c.now, 3); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, "|"), strings.Join(c.want, "|"))
		}
	}
}
