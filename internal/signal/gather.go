package signal

import "sync"

// gathering keeps the keys that were published until they are taken.
type gathering struct {
	woken chan struct{}

	mu   sync.Mutex
	keys map[string]struct{} // guarded by mu
}

// Gather is Subscribe for a whole topic, for who wants to know which keys it was:
// take returns those published since the last take, each once, in no order. It
// never blocks a Publish, and grows with the number of keys.
func (b *Bus) Gather(topic string) (woken <-chan struct{}, take func() []string, cancel func()) {
	g := &gathering{woken: make(chan struct{}, 1), keys: map[string]struct{}{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gathered == nil {
		b.gathered = map[string]map[*gathering]struct{}{}
	}
	if b.gathered[topic] == nil {
		b.gathered[topic] = map[*gathering]struct{}{}
	}
	b.gathered[topic][g] = struct{}{}
	return g.woken, g.take, func() { b.scatter(topic, g) }
}

func (b *Bus) scatter(topic string, g *gathering) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.gathered[topic], g)
	if len(b.gathered[topic]) == 0 {
		delete(b.gathered, topic)
	}
}

func (g *gathering) put(key string) {
	g.mu.Lock()
	g.keys[key] = struct{}{}
	g.mu.Unlock()
	leave([]chan struct{}{g.woken})
}

func (g *gathering) take() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	keys := make([]string, 0, len(g.keys))
	for k := range g.keys {
		keys = append(keys, k)
	}
	clear(g.keys)
	return keys
}
