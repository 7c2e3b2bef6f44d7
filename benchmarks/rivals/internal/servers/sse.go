package servers

import (
	"fmt"
	"net"
	"net/http"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

// sseBuffer is the number of events that may be pending for one client.
const sseBuffer = 64

// An sseServer sends server-sent events with net/http only: a channel for each client, and a flush
// for each event.
type sseServer struct {
	hub   hub[[]byte]
	state []event.Object
}

func startSSE(l net.Listener, state []event.Object) (Server, error) {
	s := &sseServer{state: state}
	serveHTTP(l, s)
	return s, nil
}

// Publish formats the event once for all clients.
func (s *sseServer) Publish(o event.Object) { s.hub.publish(sseMessage(o.Modified())) }

func (s *sseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	events := s.hub.subscribe(sseBuffer)
	defer s.hub.unsubscribe(events)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w).Flush
	for _, o := range s.state {
		w.Write(sseMessage(o.Added()))
	}
	if flush() != nil {
		return
	}
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if _, err := w.Write(e); err != nil {
				return
			}
			if flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func sseMessage(data []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", data) }
