package servers

import (
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

// These are the settings of the chat example of gorilla/websocket.
const (
	gorillaBuffer   = 256
	gorillaPongWait = 60 * time.Second
	gorillaPing     = gorillaPongWait * 9 / 10
)

// A gorillaServer is the chat example of gorilla/websocket with prepared messages, which the
// library's documentation recommends for broadcasts.
type gorillaServer struct {
	hub      hub[*websocket.PreparedMessage]
	state    []event.Object
	upgrader websocket.Upgrader
}

func startGorilla(l net.Listener, state []event.Object) (Server, error) {
	s := &gorillaServer{state: state, upgrader: websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 1024}}
	serveHTTP(l, s)
	return s, nil
}

func (s *gorillaServer) Publish(o event.Object) {
	m, err := websocket.NewPreparedMessage(websocket.TextMessage, o.Modified())
	if err != nil {
		panic(err) // the message type is valid
	}
	s.hub.publish(m)
}

// ServeHTTP starts two goroutines and returns, so that the memory of the request can be collected.
func (s *gorillaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	events := s.hub.subscribe(gorillaBuffer)
	go s.write(conn, events)
	go func() {
		defer s.hub.unsubscribe(events)
		defer conn.Close()
		conn.SetReadLimit(512)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
}

func (s *gorillaServer) write(conn *websocket.Conn, events chan *websocket.PreparedMessage) {
	defer conn.Close()
	for _, o := range s.state {
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if conn.WriteMessage(websocket.TextMessage, o.Added()) != nil {
			return
		}
	}
	ping := time.NewTicker(gorillaPing)
	defer ping.Stop()
	for {
		select {
		case m, ok := <-events:
			conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if !ok {
				_ = conn.WriteMessage(websocket.CloseMessage, nil) // conn is closed anyway
				return
			}
			if conn.WritePreparedMessage(m) != nil {
				return
			}
		case <-ping.C:
			conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if conn.WriteMessage(websocket.PingMessage, nil) != nil {
				return
			}
		}
	}
}
