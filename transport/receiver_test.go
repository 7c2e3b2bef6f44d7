package transport

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

const oneEvent = `{"type":"ADDED","object":{"kind":"Thing"}}` + "\n"

// serveRaw starts a server that writes response to every connection and then closes the connection.
// It returns the URL of the server.
func serveRaw(t *testing.T, response string) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			// Read the request, because closing a connection with unread data sends a reset.
			c.Read(buf)
			io.WriteString(c, response)
			c.Close()
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}

func TestTruncationIsNotACleanEnd(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	const event = "2b\r\n" + oneEvent + "\r\n"
	tests := []struct {
		name, response string
		clean          bool
		code           listwatch.Code
		withinEvent    bool
	}{
		{"the last chunk", chunked + event + "0\r\n\r\n", true, 0, false},
		{
			"extensions and trailers", chunked + "2b;a=b\r\n" + oneEvent + "\r\n0\r\nX-Trailer: 1\r\n\r\n", true,
			0, false,
		},
		{
			"a chunk for each part", chunked + "5\r\n" + oneEvent[:5] + "\r\n26\r\n" + oneEvent[5:] + "\r\n0\r\n\r\n",
			true, 0, false,
		},
		{
			"a length", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 43\r\n\r\n" +
				oneEvent, true,
			0, false,
		},
		{"no last chunk", chunked + event, false, listwatch.Unavailable, false},
		{"half a last chunk", chunked + event + "0\r\n", false, listwatch.Unavailable, false},
		{"an incomplete event", chunked + event + "2b\r\n" + oneEvent[:9], false, listwatch.Unavailable, true},
		{
			"the last chunk within an event", chunked + event + "9\r\n" + oneEvent[:9] + "\r\n0\r\n\r\n", false,
			listwatch.Corrupt, true,
		},
		{"an invalid chunk", chunked + event + "nonsense\r\n", false, listwatch.Corrupt, false},
		{"less than the length", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n" +
			oneEvent, false, listwatch.Unavailable, false},
		{
			"no length", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + oneEvent, false,
			listwatch.Unavailable, false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read := 0
			c := http1Client(Network{})
			defer c.CloseIdleConnections()
			r, err := DialHTTP(t.Context(), c, &Request{URL: serveRaw(t, tt.response), Activity: func() { read++ }}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if e, err := r.Receive(); err != nil || string(e.Object) != `{"kind":"Thing"}` {
				t.Fatalf("got %q, %v", e.Object, err)
			}
			for range 2 {
				_, err = r.Receive()
				if tt.clean != (err == io.EOF) || !tt.clean && listwatch.CodeOf(err) != tt.code ||
					errors.Is(err, io.ErrUnexpectedEOF) != tt.withinEvent {
					t.Errorf("got %v; want a clean end: %v, code %v, within an event: %v", err, tt.clean, tt.code,
						tt.withinEvent)
				}
			}
			if read == 0 {
				t.Error("Activity was not called")
			}
		})
	}
}

func TestReceiverHasTheLastEventID(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, "id: 8\nevent: ADDED\ndata: "+strings.TrimSpace(oneEvent)+"\n\n")
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	c := http1Client(Network{})
	defer c.CloseIdleConnections()
	r, err := DialHTTP(t.Context(), c, &Request{URL: u, Framings: []framing.Framer{framing.JSON{}, framing.SSE{}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Receive(); err != nil || e.Version != 8 {
		t.Errorf("got %v, %v", e, err)
	}
	if got := r.(framing.Positioner).LastEventID(); got != "8" {
		t.Errorf("got last event ID %q, want 8", got)
	}
}

func TestClosedReceiverReturnsErrClosed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	c := http1Client(Network{})
	defer c.CloseIdleConnections()
	r, err := DialHTTP(t.Context(), c, &Request{URL: u}, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := r.Receive(); !errors.Is(err, net.ErrClosed) || listwatch.CodeOf(err) != listwatch.Unavailable {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}
