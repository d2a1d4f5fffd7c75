package intake

import (
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// calling is how a finding names a task.
func calling(token string, number int) string {
	if token == "" {
		return "#" + strconv.Itoa(number)
	}
	return token
}

// foreign are keys of other tools and what they are called here.
var foreign = map[string]string{
	"id": "task_id", "title": "goal", "description": "goal", "prompt": "goal", "spec": "goal", "name": "task_id",
	"depends_on": "dependencies", "deps": "dependencies", "after": "dependencies",
	"files": "write_scope", "files_modified": "write_scope", "scope": "write_scope", "files_read": "read_scope",
	"verify": "verify_cmd", "verification": "verify_cmd", "timeout": "timeout_secs", "handoff": "handoff_path", "peer": "on",
}

// longestKey bounds what is compared with known keys.
const longestKey = 64

// suggest names the known key that an unknown one may stand for.
func suggest(key string, fields []field) string {
	if len(key) > longestKey {
		return ""
	}
	best, distance := "", 3
	for _, f := range fields {
		if f.name == foreign[key] {
			return "; " + f.name + " may be meant"
		}
		if d := apart(strings.ToLower(key), f.name); d < distance && d < len(f.name) {
			best, distance = f.name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; " + best + " may be meant"
}

// apart is how many letters have to be put in, left out or replaced to make b of a;
// long words are far apart.
func apart(a, b string) int {
	if len(a) > len(b)+3 || len(b) > len(a)+3 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := left
			if a[i] != b[j] {
				changed++
			}
			left = row[j+1]
			row[j+1] = min(changed, row[j]+1, left+1)
		}
	}
	return row[len(b)]
}

// wholeSeconds is the value of a JSON number, at most hub.MaxWaveTime+1 and at
// least -1; whole is false for one with a fraction.
func wholeSeconds(number string) (secs int64, whole bool) {
	unsigned, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := unsigned, ""
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		mantissa, exponent = unsigned[:i], unsigned[i+1:]
	}
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(before+after, "0")
	point := len(before) - (len(before+after) - len(digits)) + power(exponent)
	switch digits = strings.TrimRight(digits, "0"); {
	case digits == "":
		return 0, true
	case len(digits) > point:
		return 0, false
	case negative:
		return -1, true
	case point > len(strconv.Itoa(hub.MaxWaveTime)):
		return hub.MaxWaveTime + 1, true
	}
	secs, _ = strconv.ParseInt(digits+strings.Repeat("0", point-len(digits)), 10, 64) // at most six digits
	return min(secs, hub.MaxWaveTime+1), true
}

// power is an exponent, cut to what makes a difference to a number that fits a
// file.
func power(exponent string) int {
	const most = 1 << 30
	n, err := strconv.Atoi(exponent)
	if err != nil && strings.HasPrefix(exponent, "-") {
		return -most
	}
	if err != nil && exponent != "" {
		return most
	}
	return max(min(n, most), -most)
}

// tokenOf makes a token of another tool's name for a task: what no token may hold
// becomes -, and is left out at the ends. "" if nothing is left.
func tokenOf(name string) string {
	var out strings.Builder
	for i := range min(len(name), 4*hub.MaxWaveToken) {
		c := name[i]
		if c <= ' ' || c > '~' || strings.IndexByte(".*>/-", c) >= 0 {
			c = '-'
		}
		if c != '-' || out.Len() > 0 && !strings.HasSuffix(out.String(), "-") {
			out.WriteByte(c)
		}
	}
	token := out.String()
	return strings.Trim(token[:min(len(token), hub.MaxWaveToken)], "-")
}
