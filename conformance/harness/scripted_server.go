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

	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

// A ScriptedServer is the server's end of one watch. A script controls it: with HTTP/1.1 and
// WebSocket the script writes the raw bytes of the connection, with HTTP/2 the payload of DATA
// frames.
type ScriptedServer struct {
	*Env
	Request  *http.Request
	response http.ResponseWriter // HTTP/2 only
	Conn     net.Conn
	In       *bufio.Reader   // bytes from the client; nil with HTTP/2
	text     bool            // if true, WebSocket messages are text, otherwise binary
	done     context.Context // canceled at the end of the case
}

// A script tracks the scripted servers of one handler, so that all of them end before the
// case does.
type script struct {
	running sync.WaitGroup
	done    context.Context // canceled at the end of the case
	end     context.CancelFunc

	mu sync.Mutex // ensures that no server starts after stop
}

// start reports whether a scripted server may start. If it returns true, the caller must
// call running.Done.
func (s *script) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done.Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *script) stop() {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.running.Wait()
}

// Scripted returns a handler that accepts a watch, sends response headers with the given content
// type, and runs the steps. After the last step, an HTTP/1.1 or WebSocket connection is closed,
// without a clean end of the stream unless a step such as EndCleanly has sent one. An HTTP/2 stream
// ends cleanly. The case waits for its scripted servers to end.
func (e *Env) Scripted(contentType string, do ...Step) http.HandlerFunc {
	return e.ScriptedWithHeader(ResponseHeader{ContentType: contentType}, do...)
}

// A ResponseHeader describes the headers of a scripted response.
type ResponseHeader struct {
	ContentType string
	Extra       []string // pairs of names and values
	// EndsWithConnection is for HTTP/1.1. If true, the body is not chunked, and the end of the
	// connection is the end of the body.
	EndsWithConnection bool
}

// ScriptedWithHeader is like Scripted with other response headers.
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
			return // the client has disconnected
		}
		for _, d := range do {
			d(p)
		}
		if e.Transport != "h2" {
			p.Conn.Close()
		}
	}
}

// JSONMediaType is the media type of the JSON framing, which every server has.
const JSONMediaType = "application/json"

// writeHeader sends the response headers of a stream.
func (s *ScriptedServer) writeHeader(h ResponseHeader) error {
	header := append([]string{"Content-Type", h.ContentType}, h.Extra...)
	if s.Transport == "h2" {
		for i := 0; i < len(header); i += 2 {
			s.response.Header().Set(header[i], header[i+1])
		}
		return http.NewResponseController(s.response).Flush()
	}
	conn, buffers, err := http.NewResponseController(s.response).Hijack()
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(s.Patience()))
	s.Conn, s.In = conn, buffers.Reader
	status := "200 OK"
	switch {
	case s.Transport == "ws":
		status = "101 Switching Protocols"
		header = append(header, "Upgrade", "websocket", "Connection", "Upgrade",
			"Sec-WebSocket-Accept", wsframe.AcceptKey(s.Request.Header.Get("Sec-Websocket-Key")))
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

// Send sends a payload as one chunk, one DATA frame or one message, depending on the
// transport.
func (s *ScriptedServer) Send(payload string) {
	switch {
	case s.Transport == "h2":
		_, _ = io.WriteString(s.response, payload)
		_ = http.NewResponseController(s.response).Flush() // the client may have disconnected
	case s.Transport == "h1":
		s.SendRaw(fmt.Sprintf("%x\r\n%s\r\n", len(payload), payload))
	case s.text:
		s.SendFrame(wsframe.Unfragmented(wsframe.OpText, payload))
	default:
		s.SendFrame(wsframe.Unfragmented(wsframe.OpBinary, payload))
	}
	s.settle()
}

// SendRaw writes bytes to the connection. It ignores errors, because the client may have
// disconnected.
func (s *ScriptedServer) SendRaw(bytes string) { _, _ = io.WriteString(s.Conn, bytes) }

// SendFrame sends a WebSocket frame.
func (s *ScriptedServer) SendFrame(f wsframe.Frame) { s.SendRaw(string(f.Bytes())) }

// settle gives the client time to read what has been sent, so that the next bytes arrive in
// another read. It sleeps only under a fake clock, where this costs nothing.
func (s *ScriptedServer) settle() {
	if s.Setup.FakeTime && s.done.Err() == nil {
		<-time.After(time.Millisecond)
	}
}

// StartScript starts a server that runs the given steps for every watch. It returns a copy of
// e with a route to this server.
func (e *Env) StartScript(contentType string, do ...Step) *Env {
	e.Helper()
	e.Use(InProcess)
	return e.StartScriptOnAnyTarget(contentType, do...)
}

// StartScriptOnAnyTarget is like StartScript, for cases that also run against targets
// without the ability InProcess.
func (e *Env) StartScriptOnAnyTarget(contentType string, do ...Step) *Env {
	e.Helper()
	return e.WithRoute(e.ServeOnAnyTarget(e.Scripted(contentType, do...)))
}

// A Step is one action of a scripted server.
type Step func(p *ScriptedServer)
