package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/kubestatus"
)

// A Response is an HTTP response as it arrived on the connection, without processing by a
// client library.
type Response struct {
	*Env
	Status int
	// Headers holds all headers of the response.
	Headers http.Header
	// Body is the decoded body, without chunk or DATA framing. After a 101 response, it
	// returns the bytes of the connection.
	Body *bufio.Reader
	// Conn is used to write to a WebSocket.
	Conn net.Conn
	// Request describes the request in failure messages.
	Request string
}

// readResponse reads the head of an HTTP/1.1 response. Unlike net/http, it keeps all
// headers.
func (e *Env) readResponse(c net.Conn, method string) *Response {
	e.Helper()
	in := bufio.NewReader(c)
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := in.ReadString('\n')
		if err != nil {
			e.Fatalf("read the response headers: %q, %v", head.String()+line, err)
		}
		head.WriteString(line)
	}
	_, fields, _ := strings.Cut(head.String(), "\r\n")
	mime, err := textproto.NewReader(bufio.NewReader(strings.NewReader(fields))).ReadMIMEHeader()
	if err != nil {
		e.Fatalf("parse the response headers %q: %v", fields, err)
	}
	all := bufio.NewReader(io.MultiReader(strings.NewReader(head.String()), in))
	resp, err := http.ReadResponse(all, &http.Request{Method: method})
	if err != nil {
		e.Fatal(err)
	}
	a := &Response{
		Env: e, Status: resp.StatusCode, Headers: http.Header(mime), Body: bufio.NewReader(resp.Body), Conn: c,
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		a.Body = all
	}
	return a
}

// WantStatus fails the case if the status is not want. It returns the headers.
func (r *Response) WantStatus(want int) http.Header {
	r.Helper()
	if r.Status != want {
		var body []byte
		if r.Status >= 400 { // reading from an accepted stream could block
			body, _ = r.Body.Peek(200)
		}
		r.Fatalf("%sgot status %d %s, want %d", r.Request, r.Status, body, want)
	}
	return r.Headers
}

// WantAccepted fails the case unless the server accepted the watch. The status must be 101
// for WebSocket, and 200 otherwise.
func (r *Response) WantAccepted() http.Header {
	r.Helper()
	if r.Transport == "ws" {
		return r.WantStatus(http.StatusSwitchingProtocols)
	}
	return r.WantStatus(http.StatusOK)
}

// WantRefused fails the case unless the response is an HTTP error with a matching Status in
// JSON and no WebSocket upgrade. It returns the Status.
func (r *Response) WantRefused(code int, reason string) kubestatus.Status {
	r.Helper()
	h := r.WantStatus(code)
	if got := h.Values("Content-Type"); len(got) != 1 || got[0] != "application/json" {
		r.Errorf("%sgot Content-Type %q, want application/json", r.Request, got)
	}
	if h.Get("Sec-Websocket-Accept") != "" {
		r.Errorf("%sthe error has Sec-WebSocket-Accept", r.Request)
	}
	var s kubestatus.Status
	body := r.ReadAll()
	if err := json.Unmarshal(body, &s); err != nil {
		r.Fatalf("%sgot %q, want a Status: %v", r.Request, body, err)
	}
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != "Failure" || s.Code != code ||
		s.Reason != reason || s.Message == "" {
		r.Errorf("%sgot %s, want a Failure of code %d and reason %s with a message", r.Request, body, code, reason)
	}
	return s
}

// ReadAll reads the body to its end.
func (r *Response) ReadAll() []byte {
	r.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		r.Fatalf("read the body: %q, %v", body, err)
	}
	return body
}

// ReadMessage reads a WebSocket frame that must hold a whole, unmasked message.
func (r *Response) ReadMessage() (op byte, payload []byte) {
	r.Helper()
	f, err := wsframe.Read(r.Body)
	if err != nil {
		r.Fatalf("read a message: %v", err)
	}
	if f.First&^0x0f != wsframe.Final || f.Masked {
		r.Fatalf("got a frame with first byte %#02x, masked: %v; want a whole, unmasked message", f.First, f.Masked)
	}
	return f.Opcode(), f.Payload
}

// ReadBytes reads n bytes of the body.
func (r *Response) ReadBytes(n int) []byte {
	r.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(r.Body, p); err != nil {
		r.Fatal(err)
	}
	return p
}

// WantAdded reads the first event and reports an error if it is not an ADDED event in the JSON
// framing. White space between the tokens is allowed.
func (r *Response) WantAdded() {
	r.Helper()
	if got := EventLineFromJSON(r.readFirst()); !strings.HasPrefix(got, "ADDED ") {
		r.Errorf("%sgot %s, want an ADDED event in JSON", r.Request, got)
	}
}

// readFirst reads the first message for WebSocket, otherwise the first JSON value of the body or
// the bytes that are not one.
func (r *Response) readFirst() []byte {
	r.Helper()
	if r.Transport == "ws" {
		_, payload := r.ReadMessage()
		return payload
	}
	var value json.RawMessage
	var read bytes.Buffer
	err := json.NewDecoder(io.TeeReader(r.Body, &read)).Decode(&value)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return read.Next(100)
	}
	if err != nil {
		r.Fatalf("%sgot %.100q, %v; want an event", r.Request, read.Bytes(), err)
	}
	return value
}

// WantVary reports an error if the Vary header does not contain name.
func (r *Response) WantVary(name string) {
	r.Helper()
	if !Contains(r.Headers.Values("Vary"), name) {
		r.Errorf("status %d: got Vary %q, want %s in it", r.Status, r.Headers.Values("Vary"), name)
	}
}

// Contains reports whether a comma-separated header contains item, ignoring case.
func Contains(values []string, item string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(values, ","), ","), func(s string) bool {
		return strings.EqualFold(strings.TrimSpace(s), item)
	})
}

// WantHandshakeRefused is like WantRefused for an invalid WebSocket handshake. Servers
// other than this module's may use any 4xx status, because RFC 6455 names status codes only
// as examples (sections 4.2.2 and 4.4).
func (r *Response) WantHandshakeRefused(code int, reason string) {
	r.Helper()
	if r.Supports(InProcess) {
		r.WantRefused(code, reason)
	} else if r.Status/100 != 4 {
		r.Errorf("%sgot status %d, want 4xx", r.Request, r.Status)
	}
}

// ReadEvent reads one event of the JSON framing from the raw body.
func (r *Response) ReadEvent() []byte {
	r.Helper()
	if r.Transport == "ws" {
		_, payload := r.ReadMessage()
		return payload
	}
	event, err := r.Body.ReadBytes('\n')
	if err != nil {
		r.Fatalf("got %d bytes, %.100s, %v; want an event", len(event), event, err)
	}
	return event
}
