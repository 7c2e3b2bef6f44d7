package compression

import (
	"fmt"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// sharedHistory opens watches one after the other, so that they join in the middle of segments, and
// lets some of them receive bookmarks. Each watch must receive each event before the next is
// written, with the bytes of an uncompressed watch.
func sharedHistory(e *harness.Env) {
	start := e.Put("start")
	plain := e.Dial(harness.From(start))
	var watches []*harness.Watch
	for i := range 100 {
		if i%9 == 0 {
			query := harness.From(start) + "&allowWatchBookmarks=true"
			if i%2 == 0 {
				query = harness.From(start)
			}
			watches = append(watches, e.DialRequest(query, transport.Request{
				Codings: []string{"gzip"}, Framings: []framing.Framer{framing.SSE{}},
			}))
			for _, w := range watches[len(watches)-1:] {
				for range i { // the events so far, which it receives from the log
					w.Next()
				}
			}
		}
		v := e.PutJSON(fmt.Sprint("a-", i%7), fmt.Sprintf(`{"n":%d,"text":%q}`, i, harness.RandomText(40, uint64(i))+strings.Repeat("listwatch ", i%50)))
		want := plain.Next()
		for n, w := range watches {
			if got := w.Next(); got.Version != v || string(got.Object.Data) != string(want.Object.Data) {
				e.Fatalf("event %d, watch %d: got version %d, %.200q; want version %d, %.200q", i, n, got.Version, got.Object.Data, v, want.Object.Data)
			}
		}
	}
	if e.Supports(harness.Drains) {
		if err := e.Drain(e.Context()); err != nil {
			e.Error(err)
		}
		for _, w := range watches {
			w.WantEnd()
		}
	}
}
