package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
)

// The handler accepts a stream and sends an event. The client receives the event.
func Example() {
	object, err := listwatch.ParseObject([]byte(`{"metadata":{"name":"a","resourceVersion":"7"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream, err := chunked.Server{}.Accept(w, r, transport.Options{})
		if err != nil {
			http.Error(w, err.Error(), listwatch.AsError(err).HTTPStatus())
			return
		}
		event := listwatch.Event{Type: listwatch.Added, Object: object, Version: object.Version}
		if frame, err := stream.Encoder.Frame(framing.FromEvent(event)); err == nil {
			// An error means that the client has disconnected.
			_ = stream.Sender.Send([][]byte{frame})
		}
		_ = stream.Sender.Close(transport.Finished)
		if stream.Serve != nil {
			stream.Serve() // returns when the client has read the end of the stream
		}
	}))
	defer server.Close()

	u, err := url.Parse(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &chunked.Client{}
	defer client.CloseIdleConnections()
	receiver, err := client.Dial(context.Background(), &transport.Request{URL: u})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer receiver.Close()
	for {
		event, err := receiver.Receive()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, string(event.Object))
	}
	// Output:
	// ADDED {"metadata":{"name":"a","resourceVersion":"7"}}
	// EOF
}

func ExampleOriginAllowed() {
	r := httptest.NewRequest(http.MethodGet, "http://flags.example.com/flags?watch=1", nil)
	r.Header.Set("Origin", "https://app.example.com")
	fmt.Println(transport.OriginAllowed(r, nil))
	fmt.Println(transport.OriginAllowed(r, []string{"https://*.example.com"}))
	// Output:
	// false
	// true
}
