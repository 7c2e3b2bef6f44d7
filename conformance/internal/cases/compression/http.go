package compression

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/transport"
)

// decoders maps each content coding to a function that creates a decoder. The function may read
// from its argument before it returns.
var decoders = map[string]func(io.Reader) (io.Reader, error){
	"":     func(r io.Reader) (io.Reader, error) { return r, nil },
	"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"zstd": func(r io.Reader) (io.Reader, error) { return compress.NewReader("zstd", r) },
}

// A decodedResponse reads the events of a response in any content coding.
type decodedResponse struct {
	*harness.Response
	in *bufio.Reader
}

// decode checks the content coding of a response and returns a reader of its events.
func decode(a *harness.Response, coding string) *decodedResponse {
	a.Helper()
	a.WantStatus(http.StatusOK)
	if got := a.Headers.Values("Content-Encoding"); strings.Join(got, ",") != coding {
		if coding != "" && len(got) == 0 && !a.Supports(harness.InProcess) {
			a.Skipf("the server does not compress watches with %s", coding)
		}
		a.Fatalf("got Content-Encoding %q, want %q", got, coding)
	}
	// A server that never compresses need not send Vary.
	if coding != "" || a.Supports(harness.InProcess) {
		a.WantVary("Accept-Encoding")
	}
	return &decodedResponse{Response: a}
}

// event reads the next event, which is one line.
func (d *decodedResponse) event() string {
	d.Helper()
	// Creating the decoder reads the first bytes, which may arrive only with the first event.
	// Therefore create it here and not in decode.
	if d.in == nil {
		r, err := decoders[d.Headers.Get("Content-Encoding")](d.Body)
		if err != nil {
			d.Fatal(err)
		}
		d.in = bufio.NewReader(r)
	}
	event, err := d.in.ReadString('\n')
	if err != nil {
		d.Fatalf("got %.100q, %v; want an event", event, err)
	}
	return event
}

// sizes are the text sizes of successive events: empty, larger than a frame, and small again.
var sizes = []int{0, 100, 3000, 100_000, 300, 1, 0}

func gzipCoding(e *harness.Env) { checkCoding(e, "gzip") }

func zstdCoding(e *harness.Env) { checkCoding(e, "zstd") }

// checkCoding opens two compressed watches, one with a raw request and one through the client, and
// an uncompressed watch. All three must receive each event before the next is written.
func checkCoding(e *harness.Env, name string) {
	start := e.Put("start")
	plain := decode(e.WatchRaw(harness.From(start)), "")
	byHand := decode(e.WatchRaw(harness.From(start), "Accept-Encoding", name), name)
	client := e.DialRequest(harness.From(start), transport.Request{Codings: []string{name}})
	for i, size := range sizes {
		v := e.PutJSON("a", fmt.Sprintf(`{"n":%d,"text":%q}`,
			i, harness.RandomText(size/2, 1)+strings.Repeat("listwatch ", size/20)))
		want := plain.event()
		if got := byHand.event(); got != want {
			e.Fatalf("event %d: got %.200q, want %.200q", i, got, want)
		}
		if got := client.Next(); got.Version != v || !strings.Contains(want, string(got.Object.Data)) {
			e.Fatalf("event %d: the client got version %d, %.200q; want version %d of %.200q", i,
				got.Version, got.Object.Data, v, want)
		}
	}
	for _, offer := range []string{
		name + ";q=0.5", "br, " + name, "identity;q=0.1, " + name, strings.ToUpper(name),
		"x-unknown," + name + " ; q=1",
	} {
		decode(e.WatchRaw(harness.From(start), "Accept-Encoding", offer), name).event()
	}
	if !e.Supports(harness.Drains) {
		return
	}
	if err := e.Drain(e.Context()); err != nil {
		e.Error(err)
	}
	if rest, err := io.ReadAll(byHand.in); err != nil || len(rest) > 0 {
		e.Errorf("got %q, %v after the last event; want a complete compressed stream", rest, err)
	}
	client.WantEnd()
}

func notRequested(e *harness.Env) {
	start := e.Put("start")
	e.PutJSON("a", `{"text":"`+strings.Repeat("listwatch ", 1000)+`"}`)
	for _, header := range [][]string{
		nil,
		{"Accept-Encoding", "identity"},
		{"Accept-Encoding", "identity;q=1, gzip;q=0, zstd;q=0"},
		{"Accept-Encoding", "gzip;q=0"},
		{"Accept-Encoding", "gzip;q=0.000, zstd;q=0.0"},
		{"Accept-Encoding", "*;q=0, identity"},
		{"Accept-Encoding", "br"},
		{"Accept-Encoding", "identity, gzip;q=0.5, zstd;q=0.5"},
	} {
		got := decode(e.WatchRaw(harness.From(start), header...), "").event()
		if harness.EventLineFromJSON([]byte(got)) != "ADDED a" || !strings.Contains(got, "listwatch listwatch") {
			e.Errorf("%q: got %.100q, want an uncompressed event", header, got)
		}
	}
}

func firstEventLatency(e *harness.Env) {
	codings := [][]string{{"gzip"}, {"zstd"}}
	if e.Transport == "ws" {
		codings = codings[:1] // one is enough: any coding makes the client offer permessage-deflate
	}
	for _, names := range codings {
		s := e.DialRequest(harness.From(e.Put("start")), transport.Request{Codings: names})
		want := e.Put("a")
		// No later event follows, so the server must flush this one.
		if got := s.Next().Version; got != want {
			e.Errorf("%s: got version %d, want %d", names, got, want)
		}
	}
	if e.Transport == "ws" {
		return
	}
	for _, names := range codings {
		a := e.WatchRaw(harness.From(e.Newest()), "Accept-Encoding", names[0])
		e.Put("a")
		decode(a, names[0]).event()
	}
}

// gzipMember compresses text into one gzip member.
func gzipMember(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // writing to a Buffer never fails
	_ = z.Close()
	return b.String()
}

func multiMember(e *harness.Env) {
	zstd := func(text string) string { return string(compress.AppendZstd(nil, []byte(text))) }
	for name, encode := range map[string]func(string) string{"gzip": gzipMember, "zstd": zstd} {
		var all []string
		for i := range 3 {
			all = append(all, harness.EventJSON("ADDED", string(rune('a'+i)), fmt.Sprint(5+i))+"\n")
		}
		long := harness.EventJSON("ADDED", strings.Repeat("d", 2000), "8") + "\n"
		parts := []string{
			encode(all[0]), encode(""), encode(all[1] + all[2]), encode(long[:1000]) + encode(long[1000:]),
		}
		read := make(chan struct{})
		h := harness.ResponseHeader{ContentType: harness.JSONMediaType, Extra: []string{"Content-Encoding", name}}
		s := e.WithRoute(e.Serve(e.ScriptedWithHeader(h, harness.SendPieces(parts[:3]...), harness.WaitFor(read),
			harness.SendPieces(parts[3]), harness.EndCleanly))).
			DialRequest("", transport.Request{Codings: []string{name}})
		s.Want("ADDED a", "ADDED b", "ADDED c") // readable before the server sends the rest
		close(read)
		s.Want("ADDED " + strings.Repeat("d", 2000))
		s.WantEnd()
	}
}

func optOut(e *harness.Env) {
	start := e.Put("start")
	e.PutJSON("a", `{"text":"`+strings.Repeat("listwatch ", 10_000)+`"}`)
	if e.Transport == "ws" {
		if a := offerDeflate(e, start, harness.Deflate); a.accepted {
			e.Error("the server accepts permessage-deflate, want it declined")
		}
		return
	}
	for _, offer := range []string{"gzip", "zstd", "gzip, zstd, *"} {
		decode(e.WatchRaw(harness.From(start), "Accept-Encoding", offer), "").event()
		decode(e.ListRaw("", "Accept-Encoding", offer), "")
	}
}
