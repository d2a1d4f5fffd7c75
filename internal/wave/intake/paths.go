package intake

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// extensions are those by which a word without a slash is a file.
var extensions = strings.Fields(`
	adoc bat bzl c cc cfg conf cpp cs css csv cxx dart env ex exs go gradle graphql groovy h hpp hs htm html ini ipynb java js
	json jsonc jsx kt kts less lock lua m md mdx mjs mod php pl plist prisma properties proto ps1 py pyi r rb rs rst sass
	scala scss sh sql sum svelte svg swift tf toml ts tsx txt vue wasm xml yaml yml zig`)

// products are written like files.
var products = strings.Fields("backbone.js chart.js d3.js discord.js ember.js express.js next.js node.js nuxt.js react.js three.js vue.js")

// before are the words behind which a path without an extension is one.
var before = strings.Fields("at folder directory from in inside into to under within")

var extension = regexp.MustCompile(`^[A-Za-z0-9_]{1,10}$`)

// pathsIn finds the paths that a description names, cleaned, each once; nil for
// none. In backquotes they are words with a slash or a known extension. Elsewhere
// one with a slash also has an extension, ends with the slash, or stands behind a
// word such as in: and/or is no path. What is absolute, such as a route, or an
// address is none either.
func pathsIn(text string) []string {
	var found []string
	for i, span := range strings.Split(text, "`") {
		if i%2 == 1 {
			found = addPath(found, strings.TrimSpace(span), true)
			continue
		}
		last := ""
		for word := range strings.FieldsSeq(span) {
			bare := trimWord(word)
			found = addPath(found, bare, slices.Contains(before, last))
			last = strings.ToLower(bare)
		}
	}
	return found
}

func addPath(found []string, word string, certain bool) []string {
	if !isPath(word, certain) || len(found) >= hub.MaxScopeEntries {
		return found
	}
	cleaned, err := hub.CleanPath("write_scope", word)
	if err != nil || slices.Contains(found, cleaned) {
		return found // not within the workspace: it stays in the goal only
	}
	return append(found, cleaned)
}

func isPath(word string, certain bool) bool {
	if word == "" || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "@") || strings.HasPrefix(word, "~") || strings.Contains(word, "://") ||
		strings.ContainsAny(word, " \t<>|\"';=$,") || strings.HasSuffix(word, "()") {
		return false
	}
	ext := strings.TrimPrefix(path.Ext(word), ".")
	if !strings.Contains(word, "/") {
		return len(ext) < len(word)-1 && slices.Contains(extensions, ext) && !slices.Contains(products, strings.ToLower(word))
	}
	return certain || strings.HasSuffix(word, "/") || extension.MatchString(ext)
}

// trimWord takes the signs around a word off.
func trimWord(word string) string {
	word = strings.TrimLeft(word, "([{\"'*_")
	for {
		trimmed := strings.TrimRight(word, ",;:!?\"'*_.")
		for _, pair := range []string{"()", "[]", "{}"} {
			if strings.HasSuffix(trimmed, pair[1:]) && strings.Count(trimmed, pair[:1]) < strings.Count(trimmed, pair[1:]) {
				trimmed = trimmed[:len(trimmed)-1]
			}
		}
		if trimmed == word {
			return word
		}
		word = trimmed
	}
}
