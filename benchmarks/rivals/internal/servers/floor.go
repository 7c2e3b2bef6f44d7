package servers

import (
	"io"
	"net"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

// writeTimeout is the time within which a client must accept data, in the servers that set write
// deadlines themselves.
const writeTimeout = 10 * time.Second

// floorBuffer is the number of events that may be pending for one connection.
const floorBuffer = 256

// A floorServer shows the lowest possible cost of a server with a goroutine for each connection: an
// event wakes the goroutine, which writes it to the socket.
type floorServer struct {
	hub   hub[[]byte]
	state []event.Object
}

func startFloor(l net.Listener, state []event.Object) (Server, error) {
	s := &floorServer{state: state}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s, nil
}

func (s *floorServer) Publish(o event.Object) { s.hub.publish(append(o.Modified(), '\n')) }

func (s *floorServer) serve(conn net.Conn) {
	defer conn.Close()
	request := make([]byte, 4)
	if _, err := io.ReadFull(conn, request); err != nil {
		return
	}
	events := s.hub.subscribe(floorBuffer)
	defer s.hub.unsubscribe(events)
	if _, err := conn.Write([]byte("ok\r\n\r\n")); err != nil {
		return
	}
	for _, o := range s.state {
		if _, err := conn.Write(append(o.Added(), '\n')); err != nil {
			return
		}
	}
	var deadline time.Time
	for e := range events {
		if now := time.Now(); deadline.Sub(now) < writeTimeout {
			deadline = now.Add(2 * writeTimeout)
			conn.SetWriteDeadline(deadline)
		}
		if _, err := conn.Write(e); err != nil {
			return
		}
	}
}
