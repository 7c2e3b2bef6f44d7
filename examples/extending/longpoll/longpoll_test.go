package longpoll

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/examples/extending/msgpackframing"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/watchserver"
)

func TestTransport(t *testing.T) {
	server := &Server{}
	conformance.TestTransport(t, transporttest.Pair{
		Server:    server,
		Client:    func(n transport.Network) transport.Client { return &Client{Network: n} },
		Configure: func(s *http.Server, _ transport.Options) { s.Handler = server.Handler(s.Handler) },
		Framings:  append(framing.Default().Framers(), msgpackframing.Framer{}),
	})
}

func TestTokenIsValidForOnePoll(t *testing.T) {
	server := &Server{}
	opened := httptest.NewRecorder()
	s, err := server.Accept(opened, httptest.NewRequest(http.MethodGet, "/", nil), transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sender.Send([][]byte{[]byte("event")}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		poll := httptest.NewRequest(http.MethodPost, "/", nil)
		poll.Header.Set(tokenHeader, opened.Header().Get(tokenHeader))
		w := httptest.NewRecorder()
		server.Handler(nil).ServeHTTP(w, poll)
		if w.Code != want {
			t.Errorf("got status %d, want %d: %s", w.Code, want, w.Body)
		}
	}
}

type flag struct {
	listwatch.Metadata `json:"metadata"`
}

func Example() {
	ctx := context.Background()
	flags := memory.New[flag]()
	polls := &Server{}
	server := httptest.NewServer(polls.Handler(&watchserver.Server{
		Source:     flags,
		Transports: []transport.Server{polls},
	}))
	defer server.Close()

	remote := &client.Remote{URL: server.URL, Transports: []transport.Client{&Client{}}}
	defer remote.Close()
	w, err := remote.Watch(ctx, listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	if _, err := flags.Create(ctx, flag{listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		fmt.Println(err)
		return
	}
	var events [1]listwatch.Event
	if _, err := w.Next(ctx, events[:]); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(events[0].Type, events[0].Object.Key)
	// Output: ADDED dark-mode
}
