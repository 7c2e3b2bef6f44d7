package watchserver_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/watchserver"
)

// A received is an event at a client, and the time at which it arrived.
type received struct {
	listwatch.Event
	at time.Time
}

// readAll reads w until its clean end. The client has then verified the checksum of the stream.
func (w *openWatch) readAll() (all []received) {
	for {
		e, err := w.Receive()
		if errors.Is(err, io.EOF) {
			return all
		}
		event, eventErr := e.Event()
		if err = errors.Join(err, eventErr); err != nil {
			w.Errorf("%s: %v after %d events", w.transport, err, len(all))
			return all
		}
		all = append(all, received{event, time.Now()})
	}
}

// changes returns the events of all that are not bookmarks.
func changes(all []received) (text []string) {
	for _, e := range all {
		if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
			text = append(text, fmt.Sprint(e.Type, e.Version, string(e.Object.Data)))
		}
	}
	return text
}

// putPods writes n objects that resemble pods, one per interval.
func (f *fixture) putPods(n int, interval time.Duration) {
	for i := range n {
		f.put(fmt.Sprintf("pod-%d", i%10), map[string]string{
			"app": fmt.Sprintf("application-%d", i%10), "generation": fmt.Sprint(i),
			"a": strings.Repeat("x", 60), "b": fmt.Sprintf("%x", rand.Uint64()),
			"c": fmt.Sprintf("image-%d.example.com", i%10),
		})
		<-time.After(interval)
	}
}

// sharedEvents is the number of events that all clients of sharedBytes receive.
const sharedEvents = 80

// sharedBytes serves a number of clients that join one after the other, with bookmarks, and returns
// the bytes of their watches.
func sharedBytes(t *testing.T, transportName string, setting watchserver.SharedCompression) (bytes int64) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(s *watchserver.Server) {
			s.SharedCompression = setting
			s.Timing.Bookmark = 20 * time.Second
		})
		var clients sync.WaitGroup
		results := make([][]received, 8)
		for i := range results {
			w := f.watchCompressed(f.Client(transportName), "allowWatchBookmarks=1&timeoutSeconds=100",
				transport.Codings()...)
			clients.Go(func() { results[i] = w.readAll() })
			f.putPods(7, 200*time.Millisecond)
		}
		f.putPods(sharedEvents, 200*time.Millisecond)
		watches := f.WatchServer.Watches()
		for _, w := range watches {
			bytes += w.Bytes
		}
		clients.Wait()
		for i, r := range results {
			if got, want := changes(r), changes(results[0]); i > 0 &&
				fmt.Sprint(got[len(got)-sharedEvents:]) != fmt.Sprint(want[len(want)-sharedEvents:]) {
				t.Errorf("%s: client %d received other events than the first client", transportName, i)
			}
		}
	})
	return bytes
}

func TestSharedCompressionSavesBytes(t *testing.T) {
	for _, name := range []string{"chunked", "h2", "websocket"} {
		t.Run(name, func(t *testing.T) {
			separate, shared := sharedBytes(t, name, watchserver.ShareNever),
				sharedBytes(t, name, watchserver.ShareAlways)
			t.Logf("%d bytes separately, %d bytes with shared history", separate, shared)
			if shared > separate*2/3 {
				t.Errorf("got %d bytes with shared history, want at most two thirds of %d", shared, separate)
			}
		})
	}
}

func TestBookmarksWaitForTheNextSegment(t *testing.T) {
	for _, tt := range []struct {
		name     string
		interval time.Duration // between events
		mostWait time.Duration // between the time of a bookmark and its arrival
	}{{"fast", 100 * time.Millisecond, 7 * time.Second}, {"slow", 2 * time.Second, 10 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(s *watchserver.Server) {
					s.SharedCompression, s.Timing.Bookmark = watchserver.ShareAlways, 4*time.Second
				})
				var clients sync.WaitGroup
				results := make([][]received, 3)
				for i := range results {
					w := f.watchCompressed(f.Client("chunked"), "allowWatchBookmarks=1&timeoutSeconds=100",
						transport.Codings()...)
					clients.Go(func() { results[i] = w.readAll() })
				}
				f.putPods(int(95*time.Second/tt.interval), tt.interval)
				clients.Wait()
				bookmarks := make(map[listwatch.Version]int)
				for _, r := range results {
					checkBookmarks(t, r, tt.mostWait)
					for _, e := range r {
						if e.Type == listwatch.Bookmark {
							bookmarks[e.Version]++
						}
					}
				}
				if tt.name == "slow" {
					return
				}
				alone := 0
				for _, n := range bookmarks {
					if n < len(results) {
						alone++
					}
				}
				if alone > len(bookmarks)/2 {
					t.Errorf(
						"%d of %d bookmarks are at different events for different clients, want them before the same segments", alone, len(bookmarks))
				}
			})
		})
	}
}

// checkBookmarks verifies the order of versions, and that the time between two bookmarks is at most
// 5 s, the longest interval, plus the given wait.
func checkBookmarks(t *testing.T, all []received, wait time.Duration) {
	last, lastAt := listwatch.Version(0), time.Time{}
	for i, e := range all {
		if e.Version < last || e.Type != listwatch.Bookmark && e.Type != listwatch.Synced && e.Version == last {
			t.Errorf("event %d: got version %v after version %v", i, e.Version, last)
		}
		last = e.Version
		if e.Type != listwatch.Bookmark {
			continue
		}
		if late := e.at.Sub(lastAt) - 5*time.Second; !lastAt.IsZero() && late > wait {
			t.Errorf("a bookmark is %v late, want at most %v", late, wait)
		}
		lastAt = e.at
	}
	if lastAt.IsZero() {
		t.Error("got no bookmark")
	}
}

func TestSharedCompressionIsRefusedForSecrets(t *testing.T) {
	secrets := listwatch.Description{APIVersion: "v1", Kind: "Secret"}
	if err := watchserver.ShareAlways.Check(secrets); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid", err)
	}
	if err := errors.Join(watchserver.ShareNever.Check(secrets),
		watchserver.ShareAlways.Check(listwatch.Description{Kind: "Pod"})); err != nil {
		t.Error(err)
	}
}

// A recordingServer is a transport that records the option Segments of each stream.
type recordingServer struct {
	transport.Server
	segments *[]bool
}

func (s recordingServer) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream,
	error,
) {
	*s.segments = append(*s.segments, o.Segments)
	return s.Server.Accept(w, r, o)
}

func TestSharedCompressionFollowsTheSetting(t *testing.T) {
	all, one := watchserver.Endpoint{}, watchserver.Endpoint{Selection: listwatch.Selection{Namespace: "one"}}
	byField := "fieldSelector=metadata.namespace%3Done"
	for _, tt := range []struct {
		name     string
		kind     string
		setting  watchserver.SharedCompression
		endpoint watchserver.Endpoint
		query    string
		want     bool
	}{
		{"default", "Pod", watchserver.ShareNever, one, "", false},
		{"all namespaces", "Pod", watchserver.ShareSingleNamespace, all, "", false},
		{"one namespace", "Pod", watchserver.ShareSingleNamespace, one, "", true},
		{"one namespace by field", "Pod", watchserver.ShareSingleNamespace, all, byField, true},
		{"always", "Pod", watchserver.ShareAlways, all, "", true},
		{"Secret", "Secret", watchserver.ShareAlways, one, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []bool
				f := newFixture(t, func(s *watchserver.Server) {
					s.Transports = []transport.Server{recordingServer{&chunked.Server{}, &got}}
				})
				revision := new(revision.Revision)
				revision.Advance(1)
				tt.endpoint.Source = history.New(
					history.Options{
						Description: listwatch.Description{APIVersion: "v1", Kind: tt.kind},
						Revision:    revision,
					})
				tt.endpoint.SharedCompression = tt.setting
				f.endpoint = func(*http.Request) watchserver.Endpoint { return tt.endpoint }
				f.watch(f.Client("chunked"), tt.query)
				if len(got) != 1 || got[0] != tt.want {
					t.Errorf("Options.Segments is %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestInitialEventsAreCompressedTogether(t *testing.T) {
	const initial, query = 300, "timeoutSeconds=100&allowWatchBookmarks=true&" +
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	onEachTransport(t, func(s *watchserver.Server) {
		s.SharedCompression = watchserver.ShareInitial
	}, func(f *fixture, c transport.Client) {
		for i := range initial {
			f.put(fmt.Sprintf("pod-%d", i), padding)
		}
		var clients sync.WaitGroup
		var received [2][]string
		for i := range received {
			w := f.watchCompressed(c, query, transport.Codings()...)
			clients.Go(func() { received[i] = changes(w.readAll()) })
		}
		synctest.Wait()
		before := f.WatchServer.Watches()
		f.put("live", padding)
		synctest.Wait()
		live := f.WatchServer.Watches()[0].Bytes - before[0].Bytes
		clients.Wait()
		all := received[0]
		if len(all) != initial+1 || !slices.Equal(received[1], all) {
			f.Fatalf("got %d events, and %d in another watch, want %d", len(all), len(received[1]), initial+1)
		}
		if c.Name() == "websocket" {
			return
		}
		size := int64(len(all[initial]))
		if before[0].Bytes > initial*size/8 || live < size {
			f.Errorf("the initial events take %d bytes, the next one %d, want at most %d, at least %d",
				before[0].Bytes, live, initial*size/8, size)
		}
		again := f.watchCompressed(c, fmt.Sprintf("timeoutSeconds=1&resourceVersion=%v", before[0].Version), "gzip")
		if again.want("ADDED live"); again.Header().Get("Content-Encoding") != "" {
			f.Error("a watch without initial events is compressed")
		}
	})
}
