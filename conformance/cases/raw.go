package cases

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// An answer is a response as it came over a connection that no library has touched.
type answer struct {
	*env
	status int
	// header holds the headers of the response, all of them.
	header http.Header
	// body is what follows: decoded from its chunks or DATA frames; after 101, the bytes of the connection.
	body *bufio.Reader
	// conn is what to write on, once the connection is a WebSocket.
	conn net.Conn
	// asked is what the case asked for, for messages.
	asked string
}

// sampleKey and its answer are those of RFC 6455, section 1.3.
const (
	sampleKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	sampleAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// upgrade is what a WebSocket handshake has beside the request line.
var upgrade = []string{
	"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", sampleKey,
}

// watch sends the request of a watch by hand, on e's transport. header are pairs, which go out in order; on ws the headers of a sound
// handshake come first, but for those named in header, of which an empty value is not sent.
func (e *env) watch(query string, header ...string) *answer {
	e.Helper()
	return e.ask("GET", "?watch=1&"+query, header...)
}

// ask is watch for any method and target: a path, or the query of one for the collection.
func (e *env) ask(method, target string, header ...string) *answer {
	e.Helper()
	asked := asking(method, target, header)
	if e.on == "ws" {
		header = withDefaults(upgrade, header)
	}
	a := e.askOn(e.connect(e.protocols()...), method, target, header)
	a.asked = asked
	return a
}

// asking puts a request into words; a long one is cut short.
func asking(method, target string, header []string) string {
	text := method + " " + target
	for i := 0; i < len(header); i += 2 {
		text += fmt.Sprintf(", %s: %q", header[i], header[i+1])
	}
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text + ": "
}

// list asks for a list, for which no transport but HTTP itself is needed.
func (e *env) list(query string, header ...string) *answer {
	e.Helper()
	a := e.askOn(e.connect(e.protocols()...), "GET", "?"+query, header)
	a.asked = asking("GET", "?"+query, header)
	return a
}

// get is list for another path.
func (e *env) get(target string) *answer {
	e.Helper()
	return e.askOn(e.connect(e.protocols()...), "GET", target, nil)
}

func (e *env) protocols() []string {
	if e.on == "h2" {
		return []string{"h2"}
	}
	return []string{"http/1.1"}
}

func (e *env) askOn(c net.Conn, method, target string, header []string) *answer {
	e.Helper()
	if target == "" || target[0] == '?' {
		target = e.URL.EscapedPath() + target
	}
	header = withDefaults(append([]string{"Host", e.URL.Host}, pairs(e.Header)...), header)
	if e.on == "h2" {
		return e.askH2(c, method, target, header)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\n", method, target)
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			fmt.Fprintf(&text, "%s: %s\r\n", header[i], header[i+1])
		}
	}
	text.WriteString("\r\n")
	if _, err := io.WriteString(c, text.String()); err != nil {
		e.Fatal(err)
	}
	return e.readAnswer(c, method)
}

// withDefaults returns defaults, without those that header names, and then header.
func withDefaults(defaults, header []string) []string {
	var all []string
	for i := 0; i < len(defaults); i += 2 {
		named := false
		for j := 0; j < len(header); j += 2 {
			named = named || strings.EqualFold(header[j], defaults[i])
		}
		if !named {
			all = append(all, defaults[i:i+2]...)
		}
	}
	return append(all, header...)
}

// connect opens a connection; where the site is a secure one, with TLS that offers protocols.
func (e *env) connect(protocols ...string) net.Conn {
	e.Helper()
	dial := e.Network.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(context.Background(), "tcp", e.address())
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(e.patience()))
	if !e.secure() {
		return c
	}
	config := e.Network.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = e.URL.Hostname()
	}
	config.NextProtos = protocols
	secure := tls.Client(c, config)
	if err := secure.Handshake(); err != nil {
		e.Fatal(err)
	}
	return secure
}

// address is where to dial.
func (s *Instance) address() string {
	switch port := s.URL.Port(); {
	case port != "":
		return s.URL.Host
	case s.secure():
		return net.JoinHostPort(s.URL.Hostname(), "443")
	}
	return net.JoinHostPort(s.URL.Hostname(), "80")
}

// pairs returns the headers of h as names and values in turn.
func pairs(h http.Header) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			all = append(all, name, value)
		}
	}
	return all
}

// readAnswer reads the head of a response over HTTP/1. It keeps the headers that net/http would take away.
func (e *env) readAnswer(c net.Conn, method string) *answer {
	e.Helper()
	in := bufio.NewReader(c)
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := in.ReadString('\n')
		if err != nil {
			e.Fatalf("read the head of the answer: %q, %v", head.String()+line, err)
		}
		head.WriteString(line)
	}
	_, fields, _ := strings.Cut(head.String(), "\r\n")
	mime, err := textproto.NewReader(bufio.NewReader(strings.NewReader(fields))).ReadMIMEHeader()
	if err != nil {
		e.Fatalf("the headers of the answer, %q: %v", fields, err)
	}
	all := bufio.NewReader(io.MultiReader(strings.NewReader(head.String()), in))
	resp, err := http.ReadResponse(all, &http.Request{Method: method})
	if err != nil {
		e.Fatal(err)
	}
	a := &answer{env: e, status: resp.StatusCode, header: http.Header(mime), body: bufio.NewReader(resp.Body), conn: c}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		a.body = all
	}
	return a
}

// wantStatus holds the answer against a status and returns the headers.
func (a *answer) wantStatus(want int) http.Header {
	a.Helper()
	if a.status != want {
		var body []byte
		if a.status >= 400 { // not a stream, which may have nothing to say
			body, _ = a.body.Peek(200)
		}
		a.Fatalf("%sgot status %d %s, want %d", a.asked, a.status, body, want)
	}
	return a.header
}

// accepted says that a watch was: 101 on ws and 200 elsewhere.
func (a *answer) accepted() http.Header {
	a.Helper()
	if a.on == "ws" {
		return a.wantStatus(http.StatusSwitchingProtocols)
	}
	return a.wantStatus(http.StatusOK)
}

// refused says that the answer is an error before any stream: an HTTP error with a Status in JSON that says the same, and no word of
// an upgrade. It returns the Status.
func (a *answer) refused(code int, reason string) listwatch.Status {
	a.Helper()
	h := a.wantStatus(code)
	if got := h.Values("Content-Type"); len(got) != 1 || got[0] != "application/json" {
		a.Errorf("%sgot Content-Type %q, want application/json", a.asked, got)
	}
	if h.Get("Sec-Websocket-Accept") != "" {
		a.Errorf("%sthe error has Sec-WebSocket-Accept", a.asked)
	}
	var s listwatch.Status
	body := a.all()
	if err := json.Unmarshal(body, &s); err != nil {
		a.Fatalf("%sgot %q, want a Status: %v", a.asked, body, err)
	}
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != "Failure" || s.Code != code || s.Reason != reason || s.Message == "" {
		a.Errorf("%sgot %s, want a Failure of code %d and reason %s with a message", a.asked, body, code, reason)
	}
	return s
}

// all reads the body to its end.
func (a *answer) all() []byte {
	a.Helper()
	body, err := io.ReadAll(a.body)
	if err != nil {
		a.Fatalf("read the body: %q, %v", body, err)
	}
	return body
}

// message reads one frame of a WebSocket, which must be a whole message.
func (a *answer) message() (op byte, payload []byte) {
	a.Helper()
	f, err := readFrame(a.body)
	if err != nil {
		a.Fatalf("read a message: %v", err)
	}
	if f.first&^0x0f != bitFinal || f.masked {
		a.Fatalf("got a frame that begins %#02x, masked: %v; want a whole message, unmasked", f.first, f.masked)
	}
	return f.op(), f.payload
}

func (a *answer) read(n int) []byte {
	a.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(a.body, p); err != nil {
		a.Fatal(err)
	}
	return p
}

// first returns how the stream goes on: the whole message on ws, and as many bytes elsewhere as it takes to know.
func (a *answer) first() []byte {
	a.Helper()
	if a.on == "ws" {
		_, payload := a.message()
		return payload
	}
	return a.read(len(jsonEvent))
}

// jsonEvent begins every event of a watch in JSON that has a state.
const jsonEvent = `{"type":"ADDED","object":{`

// token68 is base64 as HTTP2-Settings has it.
func token68(p []byte) string { return base64.RawURLEncoding.EncodeToString(p) }
