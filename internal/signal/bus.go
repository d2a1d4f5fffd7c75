package signal

import (
	"slices"
	"sync"
)

// Bus delivers hints to subscriptions. The zero value is ready for use; all
// methods are safe for concurrent use. It starts no goroutine, and a
// subscription costs one channel and one map slot.
type Bus struct {
	mu   sync.RWMutex
	subs map[subject][]chan struct{} // guarded by mu
	// gathered are those who keep keys, by topic; guarded by mu.
	gathered map[string]map[*gathering]struct{}
}

type subject struct{ topic, key string }

// Publish leaves one hint with every subscription of the key and of the whole
// topic. It never blocks: a hint that has not been taken yet stands for this
// one too.
func (b *Bus) Publish(topic, key string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	leave(b.subs[subject{topic, key}])
	if key != "" {
		leave(b.subs[subject{topic, ""}])
	}
	for g := range b.gathered[topic] {
		g.put(key)
	}
}

func leave(chs []chan struct{}) {
	for _, ch := range chs {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Subscribe returns a channel of capacity 1 that receives a hint after each
// Publish of the key, or of any key of the topic when key is "". The
// subscription is in force when Subscribe returns. cancel ends it and may be
// called more than once; the channel is never closed.
func (b *Bus) Subscribe(topic, key string) (ch <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	s := subject{topic, key}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = make(map[subject][]chan struct{})
	}
	b.subs[s] = append(b.subs[s], c)
	return c, func() { b.remove(s, c) }
}

func (b *Bus) remove(s subject, c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := slices.DeleteFunc(b.subs[s], func(o chan struct{}) bool { return o == c })
	if len(rest) == 0 {
		delete(b.subs, s)
		return
	}
	b.subs[s] = rest
}
