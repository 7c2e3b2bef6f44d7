package compression

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// decoders read what a content coding has made; each may ask for more before it is read.
var decoders = map[string]func(io.Reader) (io.Reader, error){
	"":     func(r io.Reader) (io.Reader, error) { return r, nil },
	"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"zstd": func(r io.Reader) (io.Reader, error) { return compress.NewReader("zstd", r) },
}

// A decoded answer is read event by event, whatever its coding.
type decodedAnswer struct {
	*harness.Response
	in *bufio.Reader
}

// decoded returns the answer to be read without its coding, which must be the one that is wanted.
func decoded(a *harness.Response, want string) *decodedAnswer {
	a.Helper()
	a.WantStatus(http.StatusOK)
	if got := a.Headers.Values("Content-Encoding"); strings.Join(got, ",") != want {
		if want != "" && len(got) == 0 && !a.Can(harness.InProcess) {
			a.Skipf("the server does not compress watches by %s", want)
		}
		a.Fatalf("got Content-Encoding %q, want %q", got, want)
	}
	if want != "" || a.Can(harness.InProcess) { // who never compresses has nothing that varies
		a.WantVary("Accept-Encoding")
	}
	return &decodedAnswer{Response: a}
}

// event reads a line, which an event is.
func (d *decodedAnswer) event() string {
	d.Helper()
	if d.in == nil { // the first bytes may come with the first event
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

// sizes are those of the texts of events: nothing, a little, more than a frame, and again a little.
var sizes = []int{0, 100, 3000, 100_000, 300, 1, 0}

func compGzip(e *harness.Env) { compresses(e, "gzip") }

func compZstd(e *harness.Env) { compresses(e, "zstd") }

// compresses has two watches in a coding, one of them by hand, and one without. Each event is read in all of them before the next is
// written.
func compresses(e *harness.Env, name string) {
	start := e.Put("start")
	plain := decoded(e.WatchRaw(harness.From(start)), "")
	byHand := decoded(e.WatchRaw(harness.From(start), "Accept-Encoding", name), name)
	client := e.DialRequest(harness.From(start), transport.Request{Codings: []string{name}})
	for i, size := range sizes {
		v := e.PutJSON("a", fmt.Sprintf(`{"n":%d,"text":%q}`, i, harness.RandomText(size/2, 1)+strings.Repeat("listwatch ", size/20)))
		want := plain.event()
		if got := byHand.event(); got != want {
			e.Fatalf("event %d: got %.200q, want %.200q", i, got, want)
		}
		if got := client.Next(); got.Version != v || !strings.Contains(want, string(got.Object.Data)) {
			e.Fatalf("event %d: the client got version %d, %.200q; want %d, %.200q", i, got.Version, got.Object.Data, v, want)
		}
	}
	for _, offer := range []string{name + ";q=0.5", "br, " + name, "identity;q=0.1, " + name, strings.ToUpper(name), "x-unknown," + name + " ; q=1"} {
		decoded(e.WatchRaw(harness.From(start), "Accept-Encoding", offer), name).event()
	}
	if !e.Can(harness.Drains) {
		return
	}
	if err := e.Drain(e.Context()); err != nil {
		e.Error(err)
	}
	if rest, err := io.ReadAll(byHand.in); err != nil || len(rest) > 0 {
		e.Errorf("the end is %q, %v; want that of a coding which is complete", rest, err)
	}
	client.WantEnd()
}

func compNotAsked(e *harness.Env) {
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
		if got := decoded(e.WatchRaw(harness.From(start), header...), "").event(); !strings.HasPrefix(got, harness.JSONEventPrefix) || !strings.Contains(got, "listwatch listwatch") {
			e.Errorf("%q: got %.100q, want an event as it is", header, got)
		}
	}
}

func compFirstEvent(e *harness.Env) {
	codings := [][]string{{"gzip"}, {"zstd"}}
	if e.Transport == "ws" {
		codings = codings[:1] // all ask for the one thing there is
	}
	for _, names := range codings {
		s := e.DialRequest(harness.From(e.Put("start")), transport.Request{Codings: names})
		want := e.Put("a")
		if got := s.Next().Version; got != want { // there is nothing behind it
			e.Errorf("%s: got version %d, want %d", names, got, want)
		}
	}
	if e.Transport == "ws" {
		return
	}
	for _, names := range codings {
		a := e.WatchRaw(harness.From(e.Newest()), "Accept-Encoding", names[0])
		e.Put("a")
		decoded(a, names[0]).event()
	}
}

// member returns text as a gzip member.
func member(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // a Buffer takes everything
	_ = z.Close()
	return b.String()
}

func compMultiMember(e *harness.Env) {
	zstd := func(text string) string { return string(compress.AppendZstd(nil, []byte(text))) }
	for name, part := range map[string]func(string) string{"gzip": member, "zstd": zstd} {
		var all []string
		for i := range 3 {
			all = append(all, harness.EventJSON("ADDED", string(rune('a'+i)), fmt.Sprint(5+i))+"\n")
		}
		long := harness.EventJSON("ADDED", strings.Repeat("d", 2000), "8") + "\n"
		parts := []string{part(all[0]), part(""), part(all[1] + all[2]), part(long[:1000]) + part(long[1000:])}
		read := make(chan struct{})
		h := harness.ResponseHeader{ContentType: harness.JSONMediaType, Extra: []string{"Content-Encoding", name}}
		s := e.Via(e.Serve(e.ScriptedWithHeader(h, harness.SendPieces(parts[:3]...), harness.WaitFor(read), harness.SendPieces(parts[3]), harness.EndCleanly))).
			DialRequest("", transport.Request{Codings: []string{name}})
		s.Want("ADDED a", "ADDED b", "ADDED c") // before more has come
		close(read)
		s.Want("ADDED " + strings.Repeat("d", 2000))
		s.WantEnd()
	}
}

// A census notes which bytes a transport sends.
type census struct {
	transport.Server

	mu     sync.Mutex
	frames map[*byte]bool // guarded by mu; the first byte of each
	names  []string       // guarded by mu; of what streams were compressed with
}

// Accept has the stream's frames noted.
func (c *census) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	s, err := c.Server.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, s.Encoder.Compression())
	s.Sender = &counting{s.Sender, c}
	return s, nil
}

type counting struct {
	transport.Sender
	census *census
}

// Send notes frames.
func (s *counting) Send(frames [][]byte) error {
	s.census.mu.Lock()
	for _, f := range frames {
		s.census.frames[&f[0]] = true
	}
	s.census.mu.Unlock()
	return s.Sender.Send(frames)
}

func compSharedOnce(e *harness.Env) {
	const events = 5
	watchers := harness.Scaled(200)
	e.Use(harness.InProcess)
	start := e.Put("start")
	census := &census{Server: e.Variant.Server, frames: map[*byte]bool{}}
	at := e.Via(e.ServeWatches(&watchserver.Server{Source: e.Internals.Source, Transports: []transport.Server{census}}))
	var open []*harness.Watch
	for range watchers {
		open = append(open, at.DialRequest(harness.From(start), transport.Request{Codings: []string{"gzip"}}))
	}
	var last listwatch.Version
	for i := range events {
		last = e.PutJSON(fmt.Sprint("a-", i), `{"text":"`+strings.Repeat("listwatch ", 300)+`"}`)
	}
	e.Concurrently(watchers, func(i int) error {
		saw, err := open[i].ReadThrough(last)
		if err == nil {
			err = harness.Diff(e.EventsAfter(start), saw)
		}
		return err
	})
	census.mu.Lock()
	defer census.mu.Unlock()
	if got := len(census.frames); got != events {
		e.Errorf("%d events became %d pieces of memory for %d watchers, want one for each", events, got, watchers)
	}
	if want := compression(e); len(slices.Compact(slices.Sorted(slices.Values(census.names)))) != 1 || census.names[0] != want {
		e.Errorf("streams are compressed with %q, want %q", slices.Compact(census.names), want)
	}
}

// compression is what our server makes of a stream whose client asks for any.
func compression(e *harness.Env) string {
	switch s := e.Variant.Server.(type) {
	case *websocket.Server:
		if s.Backend == websocket.Nhooyr {
			return ""
		}
		return harness.Deflate
	}
	return "gzip"
}

func compOptOut(e *harness.Env) {
	start := e.Put("start")
	e.PutJSON("a", `{"text":"`+strings.Repeat("listwatch ", 10_000)+`"}`)
	if e.Transport == "ws" {
		if a := offerDeflate(e, start, harness.Deflate); a.agreed {
			e.Error("the server agrees to compress")
		}
		return
	}
	for _, offer := range []string{"gzip", "zstd", "gzip, zstd, *"} {
		decoded(e.WatchRaw(harness.From(start), "Accept-Encoding", offer), "").event()
		decoded(e.ListRaw("", "Accept-Encoding", offer), "")
	}
}
