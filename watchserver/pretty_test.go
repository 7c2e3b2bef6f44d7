package watchserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A discardingWriter counts the bytes of a response and drops them.
type discardingWriter struct {
	header http.Header
	n      int64
}

func (w *discardingWriter) Header() http.Header { return w.header }
func (w *discardingWriter) WriteHeader(int)     {}
func (w *discardingWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}

var _ io.Writer = (*discardingWriter)(nil)

// While a client reads slowly, the server keeps the memory that its list has allocated, so this
// memory must not depend on the size of the collection.
func TestPrettyListAllocatesLittle(t *testing.T) {
	flags := memory.New[Flag]()
	value := strings.Repeat("x", 100<<10)
	for i := range 24 {
		flag := Flag{Metadata: listwatch.Metadata{Name: fmt.Sprint(i), Annotations: map[string]string{"a": value}}}
		if _, err := flags.Create(t.Context(), flag); err != nil {
			t.Fatal(err)
		}
	}
	s := &watchserver.Server{Source: flags}
	var before, after runtime.MemStats
	w := &discardingWriter{header: http.Header{}}
	runtime.ReadMemStats(&before)
	s.ServeHTTP(w, httptest.NewRequest("GET", "/?pretty=true", nil))
	runtime.ReadMemStats(&after)
	if w.n < 24*100<<10 {
		t.Fatalf("the list has %d bytes, want all objects", w.n)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("a list of %d bytes allocated %d bytes, want at most 1 MiB", w.n, used)
	}
}
