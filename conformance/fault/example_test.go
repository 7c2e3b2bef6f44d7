package fault_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/listwatch/listwatch/conformance/fault"
)

// This program cuts a connection after the first five bytes from the server.
func Example() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	go func() {
		if c, err := server.Accept(); err == nil {
			fmt.Fprint(c, "0123456789")
		}
	}()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &fault.Proxy{
		Listener: front,
		Dial:     func(context.Context) (net.Conn, error) { return net.Dial("tcp", server.Addr().String()) },
		Plan:     func(int) fault.Fault { return fault.Fault{Kind: fault.Cut, ServerBytes: 5} },
	}
	go p.Serve()
	defer p.Close()

	client, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	data, err := io.ReadAll(client)
	fmt.Println(string(data), err, p.Injections())
	// Output: 01234 <nil> map[cut:1]
}
