//go:build !race

package lives

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// A watch is an open watch of a side.
type watch struct {
	ended  chan struct{} // closed at the end of the stream
	events []map[string]any
}

// open opens a watch, which ends with ctx at the latest. It is nil if the side refuses it.
func (s *side) open(ctx context.Context, r step) (*watch, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+r.path+"?watch=true&"+r.query, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, nil
	}
	w := &watch{ended: make(chan struct{})}
	go func() { // ends with ctx
		defer close(w.ended)
		defer answer.Body.Close()
		for d := json.NewDecoder(answer.Body); ; {
			var event map[string]any
			if d.Decode(&event) != nil {
				return
			}
			w.events = append(w.events, event)
		}
	}()
	return w, nil
}

// awaitEnd waits until the API server ends the watch. It returns the types of the events and the
// objects' names and versions, or a text if the watch does not end.
func (w *watch) awaitEnd(ctx context.Context) []string {
	select {
	case <-w.ended:
	case <-time.After(settleTimeout):
		return []string{"the watch does not end"}
	case <-ctx.Done():
		return []string{ctx.Err().Error()}
	}
	var all []string
	for _, e := range w.events {
		o, _ := e["object"].(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		all = append(all, fmt.Sprint(e["type"], " ", o["apiVersion"], " ", meta["name"]))
	}
	return all
}

// openWatches opens a watch at both sides. It reports whether the life can continue.
func (l *life) openWatches(ctx context.Context, s step) bool {
	var err error
	if l.watches[0], err = l.kubernetes.open(ctx, s); err == nil {
		l.watches[1], err = l.ours.open(ctx, s)
	}
	if err != nil || l.watches[0] == nil || l.watches[1] == nil {
		l.note("watch", []difference{{"", "open", fmt.Sprint(l.watches[0] != nil, err), l.watches[1] != nil}})
		return false
	}
	return true
}

// awaitWatches waits until both watches have ended, and compares their events.
func (l *life) awaitWatches(ctx context.Context) bool {
	k, o := l.watches[0].awaitEnd(ctx), l.watches[1].awaitEnd(ctx)
	if fmt.Sprint(k) == fmt.Sprint(o) {
		return true
	}
	l.note("watch", []difference{{"", "events", k, o}})
	return false
}
