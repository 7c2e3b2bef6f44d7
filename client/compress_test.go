package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/watchserver"
)

func TestCompressionKeepsEvents(t *testing.T) {
	forEachTransport(t, func(t *testing.T, name string) {
		var compressed atomic.Int64
		countCompressed := &watchserver.Trace{Opened: func(_ context.Context, w watchserver.Watch) {
			if w.Compression != "" {
				compressed.Add(1)
			}
		}}
		s := startServer(t, servertest.Options{Configure: func(ws *watchserver.Server) { ws.Trace = countCompressed }})
		r := s.remote(t, name)
		r.Compress = true
		q := watchFrom(int(s.put(t, "first", 0).Version))
		local, err := s.things.Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		remote := testkit.Watch(t, r, q)
		const writes = 100
		for i := range writes {
			data := fmt.Appendf(nil, `{"metadata":{"name":"t%d"},"text":%q}`, i, strings.Repeat(fmt.Sprint(i), 400))
			if _, err := s.things.Create(t.Context(), data); err != nil {
				t.Fatal(err)
			}
			if i%30 == 0 {
				s.ResetConns()
			}
		}
		want, got := testkit.Read(t, local, writes), testkit.Read(t, remote, writes)
		for i, e := range got {
			if !bytes.Equal(e.Object.Data, want[i].Object.Data) {
				t.Fatalf("event %d: got %.80s, want %.80s", i, e.Object.Data, want[i].Object.Data)
			}
		}
		// The server may still have to call Trace.Opened for a watch when the client has received
		// all events.
		synctest.Wait()
		if n := compressed.Load(); n < 2 {
			t.Errorf("%d responses were compressed, want at least 2", n)
		}
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil || len(page.Items) != writes+1 || !bytes.Equal(page.Items[1].Data, want[0].Object.Data) {
			t.Errorf("List returned %d items, error %v", len(page.Items), err)
		}
	})
}

// respondCompressed returns the function of a server that responds to every list with the given
// body, compressed by gzip. coding is the Content-Encoding of the response, on several lines if it
// contains "|".
func respondCompressed(coding, body string) func(int) listResponse {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, body)
	z.Close()
	return func(int) listResponse {
		return listResponse{
			status: 200, body: b.String(),
			header: http.Header{"Content-Encoding": strings.Split(coding, "|")},
		}
	}
}

// Watches have the same rules; see TestOnlyRequestedCodingsAreAccepted in package transport.
func TestCodingOfAListMustBeRequested(t *testing.T) {
	for coding, want := range map[string]bool{
		"gzip": true, "GZip": true, "x-gzip": true, "gzip, gzip": false,
		"gzip|gzip": false,
	} {
		r := newRemote()
		r.Compress = true
		serveLists(r, respondCompressed(coding, listBodyOf(7, "a")))
		_, err := r.List(t.Context(), listwatch.Query{})
		if want != (err == nil) || !want && listwatch.CodeOf(err) != listwatch.Unsupported {
			t.Errorf("Content-Encoding %q: got error %v, want an error: %v", coding, err, !want)
		}
	}
}

func TestListsAreCompressedOnRequest(t *testing.T) {
	for _, compress := range []bool{false, true} {
		r := newRemote()
		r.Compress = compress
		s := serveLists(r, respondCompressed("gzip", listBodyOf(7, "a")))
		page, err := r.List(t.Context(), listwatch.Query{})
		accepted := s.requests[0].Header.Get("Accept-Encoding")
		switch {
		case compress && (err != nil || len(page.Items) != 1 || accepted != "gzip, zstd;q=0.9"):
			t.Errorf("Accept-Encoding %q: got %v, error %v", accepted, page, err)
		case !compress && (!errors.Is(err, listwatch.Unsupported) || accepted != ""):
			t.Errorf("Accept-Encoding %q: got error %v", accepted, err)
		}
	}
}

// Conformance case limit/bomb.
func TestCompressedListsAreLimited(t *testing.T) {
	const head = `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`
	for name, tt := range map[string]struct {
		respond func(int) listResponse
		want    listwatch.Code
	}{
		"large object": {respondCompressed("gzip", head+`{"text":"`+strings.Repeat("a", 8<<20)), listwatch.Corrupt},
		"large list":   {respondCompressed("gzip", head+"]"+strings.Repeat(" ", 8<<20)+"}"), listwatch.Corrupt},
		"not gzip": {func(int) listResponse {
			return listResponse{200, listBodyOf(7), http.Header{"Content-Encoding": {"gzip"}}}
		}, listwatch.Corrupt},
		"other coding": {respondCompressed("br", listBodyOf(7)), listwatch.Unsupported},
		"truncated":    {respondCompressed("gzip", head), listwatch.Unavailable},
	} {
		r := newRemote()
		r.Compress, r.MaxObjectBytes, r.MaxListBytes = true, 1<<20, 4<<20
		serveLists(r, tt.respond)
		if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != tt.want {
			t.Errorf("%s: got error %v, want code %v", name, err, tt.want)
		}
	}
}
