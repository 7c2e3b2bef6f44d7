package library_test

import (
	"fmt"
	"io"

	"github.com/listwatch/listwatch/transport/websocket/library"
)

// frames is a WebSocket library with one message and a close frame.
type frames struct{ messages []io.Reader }

func (f *frames) Next(read func(io.Reader) error) (isBinary bool, err error) {
	if len(f.messages) == 0 {
		return false, library.Closed(1001, "restart")
	}
	message := f.messages[0]
	f.messages = f.messages[1:]
	return false, read(message)
}

func (f *frames) WriteClose(int, string) {}
func (f *frames) Close()                 {}

// An adapter reports the close frame of the server with Closed.
func ExampleClosed() {
	var c library.ClientConn = new(frames)
	_, err := c.Next(func(io.Reader) error { return nil })
	fmt.Println(err)
	// Output: closed with code 1001 "restart"
}
