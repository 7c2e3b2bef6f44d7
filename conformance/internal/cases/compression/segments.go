package compression

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// sharedHistory opens watches one after the other, so that they join in the middle of segments
// (consecutive events that are compressed with one history), and lets half of them receive
// bookmarks. Each watch must receive each event before the next is written, with the same bytes as
// an uncompressed watch.
func sharedHistory(e *harness.Env) {
	start := e.Put("start")
	plain := e.Dial(harness.From(start))
	var watches []*harness.Watch
	var separate []*deflateWatch // WebSockets without context takeover
	if isWebSocket(e) {
		separate = append(separate, offerDeflate(e, start, harness.DeflateNoContext),
			offerDeflate(e, start, harness.DeflateNoContext))
	}
	for i := range 100 {
		if i%9 == 0 {
			w := e.DialRequest(fmt.Sprintf("%s&allowWatchBookmarks=%t", harness.From(start), i%2 == 0),
				compressedRequest(e))
			for range i { // the events so far, which the new watch receives from the log
				nextChange(w)
			}
			watches = append(watches, w)
		}
		v := e.PutJSON(fmt.Sprint("a-", i%7),
			fmt.Sprintf(`{"n":%d,"text":%q}`, i, harness.RandomText(40, uint64(i))+strings.Repeat("listwatch ", i%50)))
		want := plain.Next()
		for n, w := range watches {
			if got := nextChange(w); got.Version != v || string(got.Object.Data) != string(want.Object.Data) {
				e.Fatalf("event %d, watch %d: got version %d, %.200q; want version %d, %.200q", i, n, got.Version,
					got.Object.Data, v, want.Object.Data)
			}
		}
		for _, w := range separate {
			if got, _ := w.event(); !strings.Contains(got, string(want.Object.Data)) {
				e.Fatalf("event %d: got %.200q, want the event of version %d", i, got, v)
			}
		}
	}
	e.DrainWatches()
	for _, w := range watches {
		wantEndAfterBookmarks(w)
	}
}

// compressedRequest returns a request that accepts compression in which an event can refer to
// earlier events. Over HTTP it requests server-sent events. Their heartbeats are compressed too, so
// the client's decompressor also sees text between the events.
func compressedRequest(e *harness.Env) transport.Request {
	r := transport.Request{Codings: []string{"gzip"}}
	if !isWebSocket(e) {
		r.Framings = []framing.Framer{framing.SSE{}}
	}
	return r
}

func isWebSocket(e *harness.Env) bool { return strings.HasPrefix(e.Variant.Name, "ws") }

// nextChange returns the next event that is not a bookmark.
func nextChange(w *harness.Watch) listwatch.Event {
	w.Helper()
	for {
		if e := w.Next(); e.Type != listwatch.Bookmark {
			return e
		}
	}
}

// wantEndAfterBookmarks reads w to its clean end. Only bookmarks may precede the end.
func wantEndAfterBookmarks(w *harness.Watch) {
	w.Helper()
	for {
		e, err := w.ReceiveEvent()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil || e.Type != listwatch.Bookmark:
			w.Fatalf("got %s, %v; want a bookmark or a clean end", harness.EventLine(e), err)
		}
	}
}
