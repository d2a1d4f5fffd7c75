package config

import (
	"fmt"
	"strconv"
	"strings"
)

// list accepts a list, or text with commas as variables and flags have it.
func list(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case string:
		return split(v)
	}
	return nil
}

func split(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func boolean(v any) (bool, error) {
	if b, ok := v.(bool); ok {
		return b, nil
	}
	b, err := strconv.ParseBool(text(v))
	if err != nil {
		return false, fmt.Errorf("%q is not true or false", text(v))
	}
	return b, nil
}

func integer(v any) (int, error) {
	n, err := strconv.Atoi(text(v))
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text(v))
	}
	return n, nil
}

func text(v any) string {
	if items, ok := v.([]string); ok {
		return strings.Join(items, ",")
	}
	return fmt.Sprint(v)
}
