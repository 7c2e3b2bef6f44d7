package servers

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

// These are the settings of the chat example of coder/websocket.
const (
	coderBuffer       = 16
	coderWriteTimeout = 5 * time.Second
)

// A coderServer is the chat example of coder/websocket.
type coderServer struct {
	hub   hub[[]byte]
	state []event.Object
}

func startCoder(l net.Listener, state []event.Object) (Server, error) {
	s := &coderServer{state: state}
	serveHTTP(l, s)
	return s, nil
}

func (s *coderServer) Publish(o event.Object) { s.hub.publish(o.Modified()) }

func (s *coderServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx := conn.CloseRead(context.Background())
	events := s.hub.subscribe(coderBuffer)
	defer s.hub.unsubscribe(events)
	for _, o := range s.state {
		if coderWrite(ctx, conn, o.Added()) != nil {
			return
		}
	}
	for {
		select {
		case e, ok := <-events:
			if !ok {
				conn.Close(websocket.StatusPolicyViolation, "connection too slow to keep up with messages")
				return
			}
			if coderWrite(ctx, conn, e) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func coderWrite(ctx context.Context, conn *websocket.Conn, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, coderWriteTimeout)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, data)
}
