package benchmarks

import (
	"context"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// openOwn opens a watch with our client, and counts the objects that it decodes.
func (l loadSpec) openOwn(name, coding string, c *counter) error {
	client := map[string]transport.Client{
		"chunked": &chunked.Client{}, "h2": &h2.Client{}, "websocket": &websocket.Client{},
	}[name]
	r := &transport.Request{URL: &url.URL{
		Scheme: "http", Host: l.Addr, Path: "/" + l.Clients.Path,
		RawQuery: l.Clients.query(0),
	}}
	if coding != "" {
		r.Codings = []string{coding}
	}
	receiver, err := client.Dial(context.Background(), r)
	if err != nil {
		return err
	}
	go func() {
		for {
			received, err := receiver.Receive()
			if err != nil {
				return
			}
			if received.Type == listwatch.Added.String() {
				c.add(1)
			}
		}
	}()
	return nil
}
