package transporttest_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/transporttest"
)

// An example is a [transporttest.Test]. A real test passes its *testing.T instead.
type example struct{ cleanups []func() }

func (e *example) Helper()           {}
func (e *example) Cleanup(f func())  { e.cleanups = append(e.cleanups, f) }
func (e *example) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (e *example) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}

// The example sends two events over HTTP/1.1, in memory.
func ExampleStartServer() {
	t := &example{}
	defer t.end()
	server := transporttest.StartServer(t, transporttest.ServerConfig{Server: chunked.Server{}})
	client := &chunked.Client{Network: server.Network}
	defer client.CloseIdleConnections()
	watch, err := client.Dial(context.Background(), &transport.Request{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()

	stream := <-server.Streams
	frames, err := transporttest.Frames(stream.Encoder, transporttest.Event(1, 100), transporttest.Event(2, 100))
	if err == nil {
		err = stream.Sender.Send(frames)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		received, err := watch.Receive()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(received.Type, len(received.Object) > 90)
	}
	// Output:
	// ADDED true
	// ADDED true
}
