package servers

import (
	"net"
	"net/http"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
	"github.com/tmaxmax/go-sse"
)

// A goSSEServer uses the default provider of tmaxmax/go-sse. The initial state is sent before the
// subscription, because the library replays only to clients that come back.
type goSSEServer struct {
	provider sse.Joe
	state    []event.Object
}

func startGoSSE(l net.Listener, state []event.Object) (Server, error) {
	s := &goSSEServer{state: state}
	serveHTTP(l, s)
	return s, nil
}

func (s *goSSEServer) Publish(o event.Object) {
	// It fails only after a shutdown.
	_ = s.provider.Publish(goSSEMessage(o.Modified()), []string{sse.DefaultTopic})
}

func (s *goSSEServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session, err := sse.Upgrade(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, o := range s.state {
		if session.Send(goSSEMessage(o.Added())) != nil {
			return
		}
	}
	if session.Flush() != nil {
		return
	}
	_ = s.provider.Subscribe(r.Context(), sse.Subscription{Client: session, Topics: []string{sse.DefaultTopic}})
}

func goSSEMessage(data []byte) *sse.Message {
	m := &sse.Message{}
	m.AppendData(string(data))
	return m
}
