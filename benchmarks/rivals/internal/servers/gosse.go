package servers

import (
	"net"
	"net/http"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
	"github.com/tmaxmax/go-sse"
)

// A goSSEServer uses the default provider of tmaxmax/go-sse. The provider sends to one client at a
// time. Therefore ServeHTTP itself sends the initial state, except for the last object, and then
// subscribes the client. The provider sends the last object, so a client that has the whole state
// is subscribed.
type goSSEServer struct {
	provider sse.Joe
	state    []event.Object
}

func startGoSSE(l net.Listener, state []event.Object) (Server, error) {
	s := &goSSEServer{state: state}
	if n := len(state); n > 0 {
		s.state, s.provider.Replayer = state[:n-1], lastObject{goSSEMessage(state[n-1].Added())}
	}
	serveHTTP(l, s)
	return s, nil
}

func (s *goSSEServer) Publish(o event.Object) {
	// Publish fails only after a shutdown.
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

// A lastObject replays the last object of the initial state to each new subscriber.
type lastObject struct{ message *sse.Message }

func (o lastObject) Put(m *sse.Message, _ []string) (*sse.Message, error) { return m, nil }

func (o lastObject) Replay(s sse.Subscription) error {
	if err := s.Client.Send(o.message); err != nil {
		return err
	}
	return s.Client.Flush()
}

func goSSEMessage(data []byte) *sse.Message {
	m := &sse.Message{}
	m.AppendData(string(data))
	return m
}
