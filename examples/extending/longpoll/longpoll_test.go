package longpoll

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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
	"github.com/listwatch/listwatch/typed"
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

// A fixture has a collection and a watch of it. Two servers serve the polls of the watch in turn,
// because a server must not need any state from an earlier poll.
type fixture struct {
	*testing.T
	flags   typed.Collection[flag]
	watcher listwatch.Watcher
	polls   atomic.Int64
}

// startPolling watches a collection of n flags, each of slightly more than size bytes.
func startPolling(t *testing.T, n, size int) *fixture {
	f := &fixture{T: t, flags: memory.New[flag]()}
	for i := range n {
		f.create(fmt.Sprint("f", i), size)
	}
	servers := [2]*watchserver.Server{}
	for i := range servers {
		servers[i] = &watchserver.Server{Source: f.flags, Transports: []transport.Server{&Server{}}}
	}
	s := transporttest.StartServer(t, transporttest.ServerConfig{Handler: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			servers[f.polls.Add(1)%2].ServeHTTP(w, r)
		})
	}})
	s.URL.RawQuery = ""
	remote := &client.Remote{
		URL: s.URL.String(), Transports: []transport.Client{&Client{Network: s.Network}}, Backoff: pollBackoff,
	}
	var err error
	if f.watcher, err = remote.Watch(t.Context(), listwatch.Query{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.watcher.Close()
		remote.Close()
		synctest.Wait() // until the server has noticed the end of the watch
	})
	return f
}

func (f *fixture) create(name string, size int) {
	f.Helper()
	m := listwatch.Metadata{Name: name, Annotations: map[string]string{"data": strings.Repeat("x", size)}}
	if _, err := f.flags.Create(f.Context(), flag{m}); err != nil {
		f.Fatal(err)
	}
}

// next reads an event.
func (f *fixture) next() {
	f.Helper()
	if _, err := f.watcher.Next(f.Context(), make([]listwatch.Event, 1)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantPolls(when string, want int64) {
	f.Helper()
	<-time.After(time.Millisecond) // until the next poll waits
	if got := f.polls.Load(); got != want {
		f.Errorf("%s: %d polls, want %d", when, got, want)
	}
}

const initial = 500 // more events than a server sends at once

func TestPollsEndWhenTheyAreUseful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPolling(t, initial, 0)
		for range initial {
			f.next()
		}
		// One response has all initial events, and the next poll waits.
		f.wantPolls("after the initial events", 2)
		start := time.Now()
		f.create("a", 0)
		f.next()
		synctest.Wait() // otherwise the same poll could return both events
		f.create("b", 0)
		f.next()
		if waited := time.Since(start); waited > time.Millisecond {
			t.Errorf("two events took %v, want no delay between polls", waited)
		}
		f.wantPolls("after two more events", 4)
		time.Sleep(2*DefaultWait + time.Second) // fake time
		f.wantPolls("after waiting for two polls without events", 6)
		f.create("c", 0)
		f.next()
	})
}

// The initial events exceed all buffers, and the client takes longer than DefaultWait to read them.
func TestSlowClientGetsAllInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPolling(t, initial, 10<<10)
		for range initial {
			time.Sleep(3 * DefaultWait / initial)
			f.next()
		}
		f.wantPolls("after the initial events", 2)
		f.create("a", 0)
		f.next()
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
