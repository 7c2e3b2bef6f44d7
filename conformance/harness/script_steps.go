package harness

import (
	"io"
	"net/http"

	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

// SendPieces returns a step that sends each payload as one chunk, one DATA frame or one
// message, depending on the transport.
func SendPieces(payloads ...string) Step {
	return func(p *ScriptedServer) {
		for _, payload := range payloads {
			p.Send(payload)
		}
	}
}

// SendEvents returns a step that sends each event with the newline that follows it in the JSON
// framing. A WebSocket message has none.
func SendEvents(events ...string) Step {
	return func(p *ScriptedServer) {
		for _, event := range events {
			if p.Transport != "ws" {
				event += "\n"
			}
			p.Send(event)
		}
	}
}

// SendBytes returns a step for HTTP/1.1 and WebSocket that writes each string to the
// connection.
func SendBytes(bytes ...string) Step {
	return func(p *ScriptedServer) {
		for _, b := range bytes {
			p.SendRaw(b)
			p.settle()
		}
	}
}

// SendFrames returns a step for WebSocket that sends frames.
func SendFrames(frames ...wsframe.Frame) Step {
	return func(p *ScriptedServer) {
		for _, f := range frames {
			p.SendFrame(f)
			p.settle()
		}
	}
}

// EndCleanly is a step that ends the stream cleanly.
func EndCleanly(p *ScriptedServer) {
	switch p.Transport {
	case "h1":
		p.SendRaw("0\r\n\r\n")
	case "ws":
		CloseWith(wsframe.CloseNormal)(p)
	}
}

// CloseWith returns a step for WebSocket that sends a close frame and waits for the
// client's close frame.
func CloseWith(code uint16) Step {
	return func(p *ScriptedServer) {
		p.SendFrame(wsframe.Close(code))
		_, _ = wsframe.ReadCloseCode(p.In) // fails if the client has disconnected
	}
}

// CutConnection is a step that closes the connection without ending the stream.
func CutConnection(p *ScriptedServer) { p.Conn.Close() }

// ResetStream is a step that resets the stream: it sends RST_STREAM over HTTP/2, and resets the
// connection over the other transports.
func ResetStream(p *ScriptedServer) {
	if p.Transport == "h2" {
		panic(http.ErrAbortHandler)
	}
	if l, ok := p.Conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	p.Conn.Close()
}

// StayOpen is a step that waits until the client disconnects.
func StayOpen(p *ScriptedServer) {
	if p.Transport == "h2" {
		<-p.Request.Context().Done()
		return
	}
	_, _ = io.Copy(io.Discard, p.In)
}

// AnswerClose is a step for WebSocket that waits until the client closes the WebSocket or
// disconnects. Unlike StayOpen, it answers the client's close frame, because some clients wait
// for the answer.
func AnswerClose(p *ScriptedServer) {
	if _, err := wsframe.ReadCloseCode(p.In); err == nil {
		p.SendFrame(wsframe.Close(wsframe.CloseNormal))
	}
}

// WaitFor returns a step that waits until ready is closed or the case ends.
func WaitFor(ready <-chan struct{}) Step {
	return func(p *ScriptedServer) {
		select {
		case <-ready:
		case <-p.done.Done():
		}
	}
}
