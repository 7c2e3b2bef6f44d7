package cases

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
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
	return e.ask("GET", "/things?watch=1&"+query, header...)
}

// ask is watch for any method and target.
func (e *env) ask(method, target string, header ...string) *answer {
	e.Helper()
	if e.on == "ws" {
		header = withDefaults(upgrade, header)
	}
	return e.askOn(e.connect(e.protocols()...), method, target, header)
}

// list asks for a list, for which no transport but HTTP itself is needed.
func (e *env) list(query string, header ...string) *answer {
	e.Helper()
	return e.askOn(e.connect(e.protocols()...), "GET", "/things?"+query, header)
}

func (e *env) protocols() []string {
	if e.on == "h2" {
		return []string{"h2"}
	}
	return []string{"http/1.1"}
}

func (e *env) askOn(c net.Conn, method, target string, header []string) *answer {
	e.Helper()
	header = withDefaults([]string{"Host", e.url.Host}, header)
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
	dial := e.network.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(context.Background(), "tcp", e.url.Host)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(e.patience()))
	if !e.secure {
		return c
	}
	config := e.network.TLS.Clone()
	config.ServerName, config.NextProtos = "127.0.0.1", protocols
	secure := tls.Client(c, config)
	if err := secure.Handshake(); err != nil {
		e.Fatal(err)
	}
	return secure
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
	a := &answer{env: e, status: resp.StatusCode, header: http.Header(mime), body: bufio.NewReader(resp.Body)}
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
		a.Fatalf("got status %d %s, want %d", a.status, body, want)
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
		a.Errorf("got Content-Type %q, want application/json", got)
	}
	if h.Get("Sec-Websocket-Accept") != "" {
		a.Error("the error has Sec-WebSocket-Accept")
	}
	var s listwatch.Status
	body := a.all()
	if err := json.Unmarshal(body, &s); err != nil {
		a.Fatalf("got %q, want a Status: %v", body, err)
	}
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != "Failure" || s.Code != code || s.Reason != reason || s.Message == "" {
		a.Errorf("got %s, want a Failure of code %d and reason %s with a message", body, code, reason)
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

// The opcodes of RFC 6455, section 5.2.
const (
	opText, opBinary, opClose = 1, 2, 8
	finalFrame                = 0x80
)

// message reads one frame of a WebSocket, which must be a whole message of less than 64 KiB.
func (a *answer) message() (op byte, payload []byte) {
	a.Helper()
	head := a.read(2)
	length := int(head[1])
	if length == 126 {
		length = int(binary.BigEndian.Uint16(a.read(2)))
	}
	if head[0]&^0x0f != finalFrame || length > 1<<16 {
		a.Fatalf("got a frame that begins % x, want a whole message, unmasked", head)
	}
	return head[0] & 0x0f, a.read(length)
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
