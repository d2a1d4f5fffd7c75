package wave

import "math/bits"

// ranks is a set of ranks, a bit for each.
type ranks []uint64

func newRanks(total int) ranks { return make(ranks, wordsOf(total)) }

// wordsOf is how many words a set of that many ranks takes.
func wordsOf(total int) int { return (total + 63) / 64 }

func (s ranks) add(r int32) { s[r/64] |= 1 << (r % 64) }

func (s ranks) has(r int32) bool {
	return int(r/64) < len(s) && s[r/64]&(1<<(r%64)) != 0
}

// join adds what is in o.
func (s ranks) join(o ranks) {
	s = s[:len(o)]
	for i, w := range o {
		s[i] |= w
	}
}

// drop takes away what is in o.
func (s ranks) drop(o ranks) {
	o = o[:min(len(o), len(s))]
	for i, w := range o {
		s[i] &^= w
	}
}

// within keeps the ranks from low on and below high.
func (s ranks) within(low, high int) {
	clear(s[:min(low/64, len(s))])
	if low/64 < len(s) {
		s[low/64] &= ^uint64(0) << (low % 64)
	}
	if high/64 < len(s) {
		s[high/64] &= 1<<(high%64) - 1
		clear(s[high/64+1:])
	}
}

func (s ranks) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// each calls f with the ranks, the least first, until it returns false.
func (s ranks) each(f func(int32) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !f(int32(i*64 + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

// last is the greatest rank below before that is in s and not in without, -1 for
// none.
func (s ranks) last(before int32, without ranks) int32 {
	for i := int(before) / 64; i >= 0; i-- {
		if i >= len(s) {
			continue
		}
		w := s[i]
		if i < len(without) {
			w &^= without[i]
		}
		if i == int(before)/64 {
			w &= 1<<(before%64) - 1
		}
		if w != 0 {
			return int32(i*64 + bits.Len64(w) - 1)
		}
	}
	return -1
}

// crowd is a set of ranks that are added in ascending order: a list while there
// are few, then a bit for each.
type crowd struct {
	few  []int32
	many ranks
	n    int
}

// maxFew is how many ranks a crowd lists.
const maxFew = 64

func (c *crowd) add(r int32, words int) {
	if len(c.few) > 0 && c.few[len(c.few)-1] == r || c.many.has(r) {
		return
	}
	c.n++
	if c.many == nil && len(c.few) < maxFew {
		c.few = append(c.few, r)
		return
	}
	if c.many == nil {
		c.many = make(ranks, words)
		for _, f := range c.few {
			c.many.add(f)
		}
		c.few = nil
	}
	c.many.add(r)
}

// into adds the crowd to a set.
func (c *crowd) into(s ranks) {
	if c.many != nil {
		s.join(c.many)
	}
	for _, r := range c.few {
		s.add(r)
	}
}
