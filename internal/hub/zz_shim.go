package hub

import "encoding/json"

type WaveRef struct {
	Wave  WaveID
	Token string
}
type Spent struct {
	CostUSD float64
	Tokens  int64
}

func ParseUsage(raw json.RawMessage) (s Spent, ok bool) {
	ok = json.Unmarshal(raw, &s) == nil
	return
}
