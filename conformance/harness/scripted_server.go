package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch/conformance/wsframe"
)

// A ScriptedServer is a server's end of one watch, played by hand: on HTTP/1.1 and WebSocket it writes the connection's own bytes, on HTTP/2 what
// goes into DATA frames.
type ScriptedServer struct {
	*Env
	Request  *http.Request
	response http.ResponseWriter // of HTTP/2
	Conn     net.Conn
	In       *bufio.Reader   // what the client sends; not on HTTP/2
	text     bool            // messages are text
	done     context.Context // ends with the case
}

// A Step is what a peer does.
type Step func(p *ScriptedServer)

// A script is the peers of a step. None begins once it is over.
type script struct {
	running sync.WaitGroup
	done    context.Context
	end     context.CancelFunc

	mu sync.Mutex // makes a peer begin before the end or not at all
}

// start reports whether a peer may begin; it is done by playing.Done.
func (c *script) start() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done.Err() != nil {
		return false
	}
	c.running.Add(1)
	return true
}

func (c *script) stop() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.running.Wait()
}

// Scripted is a step: a watch of a content type, played by do. Where do returns the stream is not ended yet: that is another part. The
// case does not end before its peers.
func (e *Env) Scripted(contentType string, do ...Step) http.HandlerFunc {
	return e.ScriptedWithHeader(ResponseHeader{ContentType: contentType}, do...)
}

// A ResponseHeader is how the answer to a watch begins.
type ResponseHeader struct {
	ContentType        string
	Extra              []string // headers, in pairs
	EndsWithConnection bool     // over HTTP/1.1: nothing tells the end of the body but that of the connection
}

// ScriptedWithHeader is byHand with another beginning.
func (e *Env) ScriptedWithHeader(h ResponseHeader, do ...Step) http.HandlerFunc {
	all := new(script)
	all.done, all.end = context.WithTimeout(context.Background(), e.Patience())
	e.Cleanup(all.stop)
	return func(w http.ResponseWriter, r *http.Request) {
		if !all.start() {
			return
		}
		defer all.running.Done()
		p := &ScriptedServer{Env: e, Request: r, response: w, text: h.ContentType == JSONMediaType, done: all.done}
		p.Conn, _ = r.Context().Value(ConnKey{}).(net.Conn)
		if err := p.writeHeader(h); err != nil {
			return // the client has left
		}
		for _, d := range do {
			d(p)
		}
		if e.Transport != "h2" {
			p.Conn.Close()
		}
	}
}

// JSONMediaType is the media type of the framing that every server has.
const JSONMediaType = "application/json"

// writeHeader answers the request: a stream begins.
func (p *ScriptedServer) writeHeader(h ResponseHeader) error {
	header := append([]string{"Content-Type", h.ContentType}, h.Extra...)
	if p.Transport == "h2" {
		for i := 0; i < len(header); i += 2 {
			p.response.Header().Set(header[i], header[i+1])
		}
		return http.NewResponseController(p.response).Flush()
	}
	conn, buffers, err := http.NewResponseController(p.response).Hijack()
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(p.Patience()))
	p.Conn, p.In = conn, buffers.Reader
	status := "200 OK"
	switch {
	case p.Transport == "ws":
		status = "101 Switching Protocols"
		header = append(header, "Upgrade", "websocket", "Connection", "Upgrade",
			"Sec-WebSocket-Accept", wsframe.AcceptKey(p.Request.Header.Get("Sec-Websocket-Key")))
	case h.EndsWithConnection:
		header = append(header, "Connection", "close")
	default:
		header = append(header, "Transfer-Encoding", "chunked", "Connection", "close")
	}
	text := "HTTP/1.1 " + status + "\r\n"
	for i := 0; i < len(header); i += 2 {
		text += header[i] + ": " + header[i+1] + "\r\n"
	}
	_, err = io.WriteString(conn, text+"\r\n")
	return err
}

// SendPieces is a part: each payload is one chunk, one DATA frame or one message.
func SendPieces(payloads ...string) Step {
	return func(p *ScriptedServer) {
		for _, payload := range payloads {
			p.Send(payload)
		}
	}
}

// Send sends a payload as one chunk, one DATA frame or one message.
func (p *ScriptedServer) Send(payload string) {
	switch {
	case p.Transport == "h2":
		_, _ = io.WriteString(p.response, payload)
		_ = http.NewResponseController(p.response).Flush() // the client may have left
	case p.Transport == "h1":
		p.SendRaw(fmt.Sprintf("%x\r\n%s\r\n", len(payload), payload))
	case p.text:
		p.SendFrame(wsframe.Whole(wsframe.OpText, payload))
	default:
		p.SendFrame(wsframe.Whole(wsframe.OpBinary, payload))
	}
	p.settle()
}

// SendRaw writes bytes of the connection itself.
func (p *ScriptedServer) SendRaw(bytes string) { _, _ = io.WriteString(p.Conn, bytes) } // the client may have left

// SendFrame sends a frame of WebSocket.
func (p *ScriptedServer) SendFrame(f wsframe.Frame) { p.SendRaw(string(f.Bytes())) }

// SendBytes and frames are parts of HTTP/1.1 and of WebSocket.
func SendBytes(bytes ...string) Step {
	return func(p *ScriptedServer) {
		for _, b := range bytes {
			p.SendRaw(b)
			p.settle()
		}
	}
}

// SendFrames is a step for WebSocket: it sends frames.
func SendFrames(frames ...wsframe.Frame) Step {
	return func(p *ScriptedServer) {
		for _, f := range frames {
			p.SendFrame(f)
			p.settle()
		}
	}
}

// settle lets the client read what has been sent so far by itself, where the clock is a bubble's.
func (p *ScriptedServer) settle() {
	if p.Setup.FakeTime && p.done.Err() == nil {
		<-time.After(time.Millisecond)
	}
}

// EndCleanly is a part: a clean end.
func EndCleanly(p *ScriptedServer) {
	switch p.Transport {
	case "h1":
		p.SendRaw("0\r\n\r\n")
	case "ws":
		CloseWith(wsframe.CloseNormal)(p)
	}
}

// CloseWith is a part: a close frame, and the wait for the answer to it.
func CloseWith(code uint16) Step {
	return func(p *ScriptedServer) {
		p.SendFrame(wsframe.Close(code))
		_, _ = wsframe.ReadCloseCode(p.In) // that of a client that lives
	}
}

// CutConnection is a part: the connection is closed, with nothing said.
func CutConnection(p *ScriptedServer) { p.Conn.Close() }

// ResetStream is a part: RST_STREAM on HTTP/2, and elsewhere a connection that is reset.
func ResetStream(p *ScriptedServer) {
	if p.Transport == "h2" {
		panic(http.ErrAbortHandler)
	}
	if l, ok := p.Conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	p.Conn.Close()
}

// StayOpen is a part: the stream stays open until the client leaves it.
func StayOpen(p *ScriptedServer) {
	if p.Transport == "h2" {
		<-p.Request.Context().Done()
		return
	}
	_, _ = io.Copy(io.Discard, p.In)
}

// WaitFor is a part: a wait until the case closes ready, or ends.
func WaitFor(ready <-chan struct{}) Step {
	return func(p *ScriptedServer) {
		select {
		case <-ready:
		case <-p.done.Done():
		}
	}
}

// Via returns e with another site, and its client.
func (e *Env) Via(s *Route) *Env {
	other := *e
	other.Route = s
	return &other
}

// StartScript opens a site where every watch is played by do, and returns e there.
func (e *Env) StartScript(contentType string, do ...Step) *Env {
	e.Helper()
	e.Use(InProcess)
	return e.StartScriptOnAnyTarget(contentType, do...)
}

// StartScriptOnAnyTarget is hand in a case that can do without: one about servers too, of which the target may be of another make.
func (e *Env) StartScriptOnAnyTarget(contentType string, do ...Step) *Env {
	e.Helper()
	return e.Via(e.ServeOnAnyTarget(e.Scripted(contentType, do...)))
}
