package servers

import "sync"

// A hub passes values to subscribers through buffered channels, as the chat examples of the
// WebSocket libraries do. It closes the channel of a subscriber whose buffer is full.
type hub[T any] struct {
	mu   sync.Mutex
	subs map[chan T]struct{}
}

func (h *hub[T]) subscribe(buffer int) chan T {
	c := make(chan T, buffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[chan T]struct{}{}
	}
	h.subs[c] = struct{}{}
	return c
}

// unsubscribe removes c, unless publish has removed it already.
func (h *hub[T]) unsubscribe(c chan T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, c)
}

func (h *hub[T]) publish(v T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs {
		select {
		case c <- v:
		default:
			close(c)
			delete(h.subs, c)
		}
	}
}
