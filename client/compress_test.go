package client

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/watchserver"
)

// The history is the same whether it is compressed or not, through cuts and resumes.
func TestCompressionIsInvisible(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := openSite(t, nil)
		compressed := 0
		s.server.Trace = &watchserver.Trace{Opened: func(w watchserver.Watch) {
			if w.Compression != "" {
				compressed++
			}
		}}
		r := s.remote(t, name)
		r.Compress = true
		q := from(int(s.put(t, "first", 0).Version))
		here, err := s.things.Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		there := watch(t, r, q)
		const writes = 100
		for i := range writes {
			data := fmt.Appendf(nil, `{"metadata":{"name":"t%d"},"text":%q}`, i, strings.Repeat(fmt.Sprint(i), 400))
			if _, err := s.things.Create(t.Context(), data); err != nil {
				t.Fatal(err)
			}
			if i%30 == 0 {
				s.each((*memnet.Conn).Reset)
			}
		}
		want, got := next(t, here, writes), next(t, there, writes)
		for i, e := range got {
			if !bytes.Equal(e.Object.Data, want[i].Object.Data) {
				t.Fatalf("event %d: got %.80s, want %.80s", i, e.Object.Data, want[i].Object.Data)
			}
		}
		if compressed < 2 {
			t.Errorf("%d streams were compressed, want each, and there were cuts", compressed)
		}
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil || len(page.Items) != writes+1 || !bytes.Equal(page.Items[1].Data, want[0].Object.Data) {
			t.Errorf("listed %d items, %v", len(page.Items), err)
		}
	})
}

// zipped answers every list with body, compressed, and says that it is in a content coding.
func zipped(coding, body string) func(int) answer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, body)
	z.Close()
	return func(int) answer {
		return answer{status: 200, body: b.String(), header: http.Header{"Content-Encoding": {coding}}}
	}
}

func TestListsAreCompressedWhereThatWasAskedFor(t *testing.T) {
	for _, compress := range []bool{false, true} {
		r := remote()
		r.Compress = compress
		s := serveLists(r, zipped("gzip", listOf(7, "a")))
		page, err := r.List(t.Context(), listwatch.Query{})
		asked := s.seen[0].Header.Get("Accept-Encoding")
		switch {
		case compress && (err != nil || len(page.Items) != 1 || asked != "zstd, gzip;q=0.9"):
			t.Errorf("asked for %q: %v, %v", asked, page, err)
		case !compress && (!errors.Is(err, listwatch.Unsupported) || asked != ""):
			t.Errorf("asked for %q: %v", asked, err)
		}
	}
}

// limit/bomb
func TestCompressedListsAreBounded(t *testing.T) {
	const head = `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`
	for name, tt := range map[string]struct {
		answer func(int) answer
		want   listwatch.Code
	}{
		"an object": {zipped("gzip", head+`{"text":"`+strings.Repeat("a", 64<<20)), listwatch.Corrupt},
		"the list":  {zipped("gzip", head+"]"+strings.Repeat(" ", 64<<20)+"}"), listwatch.Corrupt},
		"no gzip":   {func(int) answer { return answer{200, listOf(7), http.Header{"Content-Encoding": {"gzip"}}} }, listwatch.Corrupt},
		"another":   {zipped("br", listOf(7)), listwatch.Unsupported},
		"a cut":     {zipped("gzip", head), listwatch.Unavailable},
	} {
		r := remote()
		r.Compress, r.MaxObjectBytes, r.MaxListBytes = true, 1<<20, 4<<20
		serveLists(r, tt.answer)
		if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != tt.want {
			t.Errorf("%s: %v, want code %v", name, err, tt.want)
		}
	}
}
