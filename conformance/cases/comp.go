package cases

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
	*answer
	in *bufio.Reader
}

// decoded returns the answer to be read without its coding, which must be the one that is wanted.
func (a *answer) decoded(want string) *decodedAnswer {
	a.Helper()
	a.wantStatus(http.StatusOK)
	if got := a.header.Values("Content-Encoding"); strings.Join(got, ",") != want {
		if want != "" && len(got) == 0 && !a.can(InProcess) {
			a.Skipf("the server does not compress watches by %s", want)
		}
		a.Fatalf("got Content-Encoding %q, want %q", got, want)
	}
	if want != "" || a.can(InProcess) { // who never compresses has nothing that varies
		a.wantVary("Accept-Encoding")
	}
	return &decodedAnswer{answer: a}
}

// event reads a line, which an event is.
func (d *decodedAnswer) event() string {
	d.Helper()
	if d.in == nil { // the first bytes may come with the first event
		r, err := decoders[d.header.Get("Content-Encoding")](d.body)
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

func compGzip(e *env) { e.compresses("gzip") }
func compZstd(e *env) { e.compresses("zstd") }

// compresses has two watches in a coding, one of them by hand, and one without. Each event is read in all of them before the next is
// written.
func (e *env) compresses(name string) {
	start := e.put("start")
	plain := e.watch(from(start)).decoded("")
	byHand := e.watch(from(start), "Accept-Encoding", name).decoded(name)
	client := e.dialAs(from(start), transport.Request{Codings: []string{name}})
	for i, size := range sizes {
		v := e.putText("a", fmt.Sprintf(`{"n":%d,"text":%q}`, i, noise(size/2, 1)+strings.Repeat("listwatch ", size/20)))
		want := plain.event()
		if got := byHand.event(); got != want {
			e.Fatalf("event %d: got %.200q, want %.200q", i, got, want)
		}
		if got := client.next(); got.Version != v || !strings.Contains(want, string(got.Object.Data)) {
			e.Fatalf("event %d: the client got version %d, %.200q; want %d, %.200q", i, got.Version, got.Object.Data, v, want)
		}
	}
	for _, offer := range []string{name + ";q=0.5", "br, " + name, "identity;q=0.1, " + name, strings.ToUpper(name), "x-unknown," + name + " ; q=1"} {
		e.watch(from(start), "Accept-Encoding", offer).decoded(name).event()
	}
	if !e.can(Drains) {
		return
	}
	if err := e.Drain(e.Context()); err != nil {
		e.Error(err)
	}
	if rest, err := io.ReadAll(byHand.in); err != nil || len(rest) > 0 {
		e.Errorf("the end is %q, %v; want that of a coding which is complete", rest, err)
	}
	client.wantEnd()
}

func compNotAsked(e *env) {
	start := e.put("start")
	e.putText("a", `{"text":"`+strings.Repeat("listwatch ", 1000)+`"}`)
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
		if got := e.watch(from(start), header...).decoded("").event(); !strings.HasPrefix(got, jsonEvent) || !strings.Contains(got, "listwatch listwatch") {
			e.Errorf("%q: got %.100q, want an event as it is", header, got)
		}
	}
}

func compFirstEvent(e *env) {
	codings := [][]string{{"gzip"}, {"zstd"}}
	if e.on == "ws" {
		codings = codings[:1] // all ask for the one thing there is
	}
	for _, names := range codings {
		s := e.dialAs(from(e.put("start")), transport.Request{Codings: names})
		want := e.put("a")
		if got := s.next().Version; got != want { // there is nothing behind it
			e.Errorf("%s: got version %d, want %d", names, got, want)
		}
	}
	if e.on == "ws" {
		return
	}
	for _, names := range codings {
		a := e.watch(from(e.newest()), "Accept-Encoding", names[0])
		e.put("a")
		a.decoded(names[0]).event()
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

func compMultiMember(e *env) {
	zstd := func(text string) string { return string(compress.AppendZstd(nil, []byte(text))) }
	for name, part := range map[string]func(string) string{"gzip": member, "zstd": zstd} {
		var all []string
		for i := range 3 {
			all = append(all, tiny("ADDED", string(rune('a'+i)), fmt.Sprint(5+i))+"\n")
		}
		long := tiny("ADDED", strings.Repeat("d", 2000), "8") + "\n"
		parts := []string{part(all[0]), part(""), part(all[1] + all[2]), part(long[:1000]) + part(long[1000:])}
		read := make(chan struct{})
		h := head{contentType: jsonType, more: []string{"Content-Encoding", name}}
		s := e.at(e.open(e.byHandAs(h, pieces(parts[:3]...), after(read), pieces(parts[3]), ends))).
			dialAs("", transport.Request{Codings: []string{name}})
		s.want("ADDED a", "ADDED b", "ADDED c") // before more has come
		close(read)
		s.want("ADDED " + strings.Repeat("d", 2000))
		s.wantEnd()
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

func compSharedOnce(e *env) {
	const events = 5
	watchers := many(200)
	e.use(InProcess)
	start := e.put("start")
	census := &census{Server: e.way.server, frames: map[*byte]bool{}}
	at := e.at(e.serveBy(&watchserver.Server{Source: e.inside.source, Transports: []transport.Server{census}}))
	var open []*stream
	for range watchers {
		open = append(open, at.dialAs(from(start), transport.Request{Codings: []string{"gzip"}}))
	}
	var last listwatch.Version
	for i := range events {
		last = e.putText(fmt.Sprint("a-", i), `{"text":"`+strings.Repeat("listwatch ", 300)+`"}`)
	}
	e.together(watchers, func(i int) error {
		saw, err := open[i].upTo(last)
		if err == nil {
			err = differs(e.after(start), saw)
		}
		return err
	})
	census.mu.Lock()
	defer census.mu.Unlock()
	if got := len(census.frames); got != events {
		e.Errorf("%d events became %d pieces of memory for %d watchers, want one for each", events, got, watchers)
	}
	if want := e.compression(); len(slices.Compact(slices.Sorted(slices.Values(census.names)))) != 1 || census.names[0] != want {
		e.Errorf("streams are compressed with %q, want %q", slices.Compact(census.names), want)
	}
}

// compression is what our server makes of a stream whose client asks for any.
func (e *env) compression() string {
	switch s := e.way.server.(type) {
	case *websocket.Server:
		if s.Backend == websocket.Nhooyr {
			return ""
		}
		return deflateName
	}
	return "gzip"
}

func compOptOut(e *env) {
	start := e.put("start")
	e.putText("a", `{"text":"`+strings.Repeat("listwatch ", 10_000)+`"}`)
	if e.on == "ws" {
		if a := e.offer(start, deflateName); a.agreed {
			e.Error("the server agrees to compress")
		}
		return
	}
	for _, offer := range []string{"gzip", "zstd", "gzip, zstd, *"} {
		e.watch(from(start), "Accept-Encoding", offer).decoded("").event()
		e.list("", "Accept-Encoding", offer).decoded("")
	}
}
