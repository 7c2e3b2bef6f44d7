package compression

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
	"github.com/listwatch/listwatch/watchserver"
)

// A frameRecorder records the distinct frames that a transport sends.
type frameRecorder struct {
	transport.Server

	mu sync.Mutex
	// Guarded by mu. The keys of frames are the addresses of the frames' first bytes, which
	// identify a frame. compressions contains the compression of each stream.
	frames       map[*byte]bool
	compressions []string
}

func (f *frameRecorder) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	s, err := f.Server.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compressions = append(f.compressions, s.Encoder.Compression())
	s.Sender = &recordingSender{s.Sender, f}
	return s, nil
}

type recordingSender struct {
	transport.Sender
	frameRecorder *frameRecorder
}

func (r *recordingSender) Send(frames [][]byte) error {
	r.frameRecorder.mu.Lock()
	for _, f := range frames {
		r.frameRecorder.frames[&f[0]] = true
	}
	r.frameRecorder.mu.Unlock()
	return r.Sender.Send(frames)
}

func sharedOnce(e *harness.Env) {
	const events = 5
	watchers := harness.Scaled(200)
	e.Use(harness.InProcess)
	start := e.Put("start")
	recorder := &frameRecorder{Server: e.Variant.Server, frames: map[*byte]bool{}}
	env := e.WithRoute(e.ServeWatches(&watchserver.Server{
		Source: e.Internals.Source, Transports: []transport.Server{recorder},
	}))
	var watches []*harness.Watch
	for range watchers {
		watches = append(watches, env.DialRequest(harness.From(start), transport.Request{Codings: []string{"gzip"}}))
	}
	var last listwatch.Version
	for i := range events {
		last = e.PutJSON(fmt.Sprint("a-", i), `{"text":"`+strings.Repeat("listwatch ", 300)+`"}`)
	}
	e.Concurrently(watchers, func(i int) error {
		got, err := watches[i].ReadThrough(last)
		if err == nil {
			err = harness.Diff(e.EventsAfter(start), got)
		}
		return err
	})
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	if got := len(recorder.frames); got != events {
		e.Errorf("%d events were encoded as %d frames for %d watchers, want one frame for each event", events, got,
			watchers)
	}
	if want := defaultCompression(e); len(slices.Compact(slices.Sorted(slices.Values(recorder.compressions)))) != 1 ||
		recorder.compressions[0] != want {
		e.Errorf("streams are compressed with %q, want %q", slices.Compact(recorder.compressions), want)
	}
}

// defaultCompression returns the compression that this module's server uses if the client accepts
// gzip or offers permessage-deflate.
func defaultCompression(e *harness.Env) string {
	switch e.Variant.Server.(type) {
	case *websocket.Server:
		return harness.Deflate
	case *gorilla.Server, *nhooyr.Server:
		return ""
	}
	return "gzip"
}
