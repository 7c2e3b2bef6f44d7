package longpoll

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	conformance.TestTransport(t, transporttest.Pair{
		Server:       &Server{},
		Client:       func(n transport.Network) transport.Client { return &Client{Network: n} },
		Framings:     append(framing.Default().Framers(), msgpackframing.Framer{}),
		Compressions: transport.Codings(),
	})
}

type flag struct {
	listwatch.Metadata `json:"metadata"`
}

// pollBackoff makes a Remote send the next poll at once.
var pollBackoff = listwatch.Backoff{Min: -1}

func TestPollsEndWhenTheyAreUseful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const initial = 500 // more than a batch
		flags := memory.New[flag]()
		create := func(name string) {
			if _, err := flags.Create(t.Context(), flag{listwatch.Metadata{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range initial {
			create(fmt.Sprint("f", i))
		}
		// Two servers of the same collection take turns, and keep nothing between two polls.
		servers := [2]*watchserver.Server{}
		for i := range servers {
			servers[i] = &watchserver.Server{Source: flags, Transports: []transport.Server{&Server{}}}
		}
		var polls atomic.Int64
		s := transporttest.StartServer(t, transporttest.ServerConfig{Handler: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				servers[polls.Add(1)%2].ServeHTTP(w, r)
			})
		}})
		s.URL.RawQuery = ""
		remote := &client.Remote{
			URL: s.URL.String(), Transports: []transport.Client{&Client{Network: s.Network}}, Backoff: pollBackoff,
		}
		defer remote.Close()
		w, err := remote.Watch(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			w.Close()
			synctest.Wait() // the server has noticed it
		}()
		next := func() {
			t.Helper()
			if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); err != nil {
				t.Fatal(err)
			}
		}
		wantPolls := func(when string, want int64) {
			t.Helper()
			time.Sleep(time.Millisecond) // until the next poll waits
			if got := polls.Load(); got != want {
				t.Errorf("%s: %d polls, want %d", when, got, want)
			}
		}
		for range initial {
			next()
		}
		// One response has all initial events, and the next poll waits.
		wantPolls("after the initial events", 2)
		start := time.Now()
		create("a")
		next()
		create("b")
		next()
		if waited := time.Since(start); waited > time.Millisecond {
			t.Errorf("two events took %v, want no delay between polls", waited)
		}
		wantPolls("after two more events", 4)
		time.Sleep(2*DefaultWait + time.Second) // fake time
		wantPolls("after waiting for two polls without events", 6)
		create("c")
		next()
	})
}

func Example() {
	ctx := context.Background()
	flags := memory.New[flag]()
	server := httptest.NewServer(&watchserver.Server{
		Source:     flags,
		Transports: []transport.Server{&Server{}},
	})
	defer server.Close()

	remote := &client.Remote{URL: server.URL, Transports: []transport.Client{&Client{}}, Backoff: pollBackoff}
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
