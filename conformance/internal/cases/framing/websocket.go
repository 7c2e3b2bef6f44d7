package framing

import (
	"errors"
	"io"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/framing"
)

func wsOneMessageOneEvent(e *harness.Env) {
	const burst = 50
	before := e.Put("before")
	var want []string
	live := e.WatchRaw(harness.From(before))
	live.WantAccepted()
	for range burst {
		e.Put("a", "size", "small")
		want = append(want, "MODIFIED a")
	}
	want[0] = "ADDED a"
	e.PutJSON("large", `{"text":"`+strings.Repeat("0123456789abcdef", 16<<10)+`"}`)
	want = append(want, "ADDED large", "ADDED "+e.PutSentinel())
	lagging := e.WatchRaw(harness.From(before)) // receives all events at once
	lagging.WantAccepted()
	for name, a := range map[string]*harness.Response{"live": live, "lagging": lagging} {
		for i, want := range want {
			op, text := a.ReadMessage()
			if got := harness.EventLineFromJSON(text); op != wsframe.OpText || got != want {
				e.Fatalf("%s watch: message %d has opcode %d and the text %.200s, want %s in a text message", name, i,
					op, got, want)
			}
		}
	}
}

func wsOpcode(e *harness.Env) {
	before := e.Put("before")
	e.Put("a")
	for mediaType, want := range map[string]byte{
		harness.JSONMediaType: wsframe.OpText, (framing.CBORSeq{}).MediaType(): wsframe.OpBinary,
	} {
		a := e.WatchRaw(harness.From(before), "Accept", mediaType)
		if a.Status == 406 && !e.Supports(harness.InProcess) {
			e.Logf("the server does not offer %s", mediaType)
			continue
		}
		a.WantAccepted()
		if op, payload := a.ReadMessage(); op != want {
			e.Errorf("%s: got opcode %d with payload %q, want opcode %d", mediaType, op, payload, want)
		}
	}
}

func wsFragmentedIn(e *harness.Env) {
	const event = `{"type":"ADDED","object":{"kind":"Thing","apiVersion":"v1",` +
		`"metadata":{"name":"a","resourceVersion":"5"},"text":"é€𝄞"}}`
	split := strings.Index(event, "€") + 1 // inside the bytes of €
	pong := make(chan string, 1)
	serve := func(p *harness.ScriptedServer) {
		p.SendFrame(wsframe.Frame{First: wsframe.OpText, Payload: []byte(event[:30])})
		p.SendFrame(wsframe.Unfragmented(wsframe.OpPing, "are you there?"))
		p.SendFrame(wsframe.Frame{First: wsframe.OpContinuation, Payload: []byte(event[30:split])})
		p.SendFrame(wsframe.Frame{First: wsframe.OpContinuation})
		p.SendFrame(wsframe.Unfragmented(wsframe.OpPong, "unsolicited"))
		p.SendFrame(wsframe.Frame{First: wsframe.Final | wsframe.OpContinuation, Payload: []byte(event[split:])})
		f, err := wsframe.Read(p.In)
		if err != nil || f.Opcode() != wsframe.OpPong {
			pong <- "not a pong frame"
			return
		}
		pong <- string(f.Payload)
	}
	s := e.StartScript(harness.JSONMediaType, serve, harness.EndCleanly).Dial("")
	if got := s.Want("ADDED a")[0].Object.Data; !strings.Contains(string(got), `"text":"é€𝄞"`) {
		e.Errorf("got %s, want the text as sent", got)
	}
	s.WantEnd()
	if got := <-pong; got != "are you there?" {
		e.Errorf("got %q, want a pong with the payload of the ping", got)
	}
}

// wantClose sends frames that violate the protocol to the server, which must close the connection
// with the given close code. If the target has [harness.InProcess], a scripted server then sends
// the same frames to the client, which must close the connection in the same way. The caller passes
// the frames as a server sends them: wantClose inverts Masked for the frames that it sends to the
// server.
func wantClose(e *harness.Env, name string, code int, frames ...wsframe.Frame) {
	e.Helper()
	a := e.WatchRaw("")
	a.WantAccepted()
	for _, f := range frames {
		f.Masked = !f.Masked
		_, _ = a.Conn.Write(f.Bytes()) // the server may have closed the connection
	}
	if got, err := wsframe.ReadCloseCode(a.Body); err != nil || got != code {
		e.Errorf("%s: the server closed with code %d, %v; want %d", name, got, err, code)
	}
	if e.Supports(harness.InProcess) {
		wantClientClose(e, name, code, frames...)
	}
}

func wantClientClose(e *harness.Env, name string, code int, frames ...wsframe.Frame) {
	e.Helper()
	type closeResult struct {
		code int
		err  error
	}
	closed := make(chan closeResult, 1)
	s := e.StartScriptOnAnyTarget(harness.JSONMediaType, harness.SendFrames(frames...),
		func(p *harness.ScriptedServer) {
			got, err := wsframe.ReadCloseCode(p.In)
			closed <- closeResult{got, err}
		}).Dial("")
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("%s: got %s %s, %v; want an error of code Corrupt", name, w.Type, w.Object, err)
	}
	if got := <-closed; got.code != code || got.err != nil {
		e.Errorf("%s: the client closed with code %d, %v; want %d", name, got.code, got.err, code)
	}
}

func wsUnmaskedServer(e *harness.Env) {
	before := e.Put("before")
	e.Put("a")
	a := e.WatchRaw(harness.From(before))
	a.WantAccepted()
	a.ReadMessage() // fails if the frame is masked
	ping := wsframe.Frame{First: wsframe.Final | wsframe.OpPing, Masked: true}
	if e.IsVariant("ws-nhooyr") {
		// The nhooyr server ends the connection without a close frame, and the nhooyr client
		// accepts masked frames, so check only that the server ends the connection.
		ping.Masked = false
		_, _ = a.Conn.Write(ping.Bytes())
		if _, err := io.Copy(io.Discard, a.Body); harness.IsTimeout(err) {
			e.Error("the server continues after an unmasked frame")
		}
	} else {
		wantClose(e, "a masked ping from a server, or an unmasked one from a client", wsframe.CloseProtocolError, ping)
	}
	if !e.Supports(harness.InProcess) {
		return
	}
	masked := make(chan bool, 1)
	s := e.StartScriptOnAnyTarget(harness.JSONMediaType, harness.SendFrames(wsframe.Unfragmented(wsframe.OpPing, "")),
		func(p *harness.ScriptedServer) {
			f, err := wsframe.Read(p.In)
			masked <- err == nil && f.Masked
		}, harness.EndCleanly).Dial("")
	s.WantEnd()
	if !<-masked {
		e.Error("the client does not mask its pong")
	}
}

func wsRSV(e *harness.Env) {
	for _, bit := range []byte{wsframe.RSV1, wsframe.RSV2, wsframe.RSV3, wsframe.RSV1 | wsframe.RSV2 | wsframe.RSV3} {
		wantClose(e, "a ping with reserved bits", wsframe.CloseProtocolError,
			wsframe.Frame{First: wsframe.Final | bit | wsframe.OpPing})
		wantClose(e, "a message with reserved bits", wsframe.CloseProtocolError, wsframe.Frame{
			First: wsframe.Final | bit | wsframe.OpText, Payload: []byte(harness.EventJSON("ADDED", "a", "5")),
		})
	}
}

func wsControlRules(e *harness.Env) {
	for _, op := range []byte{wsframe.OpPing, wsframe.OpPong, wsframe.OpClose} {
		wantClose(e, "a control frame of 126 bytes", wsframe.CloseProtocolError,
			wsframe.Unfragmented(op, "\x03\xe8"+strings.Repeat("x", 124)))
		wantClose(e, "a control frame in fragments", wsframe.CloseProtocolError,
			wsframe.Frame{First: op, Payload: []byte("\x03\xe8")},
			wsframe.Frame{First: wsframe.Final | wsframe.OpContinuation})
	}
	for _, op := range []byte{3, 7, 11, 15} {
		wantClose(e, "an unknown opcode", wsframe.CloseProtocolError, wsframe.Unfragmented(op, ""))
	}
}

// badUTF8 are byte sequences that are not valid UTF-8, as in sections 6.3 and 6.4 of the
// Autobahn suite.
var badUTF8 = []string{"\xce\xba\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xff", "\xe2\x82"}

func wsBadUTF8(e *harness.Env) {
	const before = `{"type":"ADDED","object":{"kind":"Thing","apiVersion":"v1",` +
		`"metadata":{"name":"a","resourceVersion":"5"},"text":"`
	const after = `"}}`
	for _, bad := range badUTF8 {
		e.Use(harness.InProcess)
		wantClientClose(e, "text that is not UTF-8", wsframe.CloseInvalidData,
			wsframe.Unfragmented(wsframe.OpText, before+bad+after))
		wantClientClose(e, "text that is not UTF-8, in fragments", wsframe.CloseInvalidData,
			wsframe.Frame{First: wsframe.OpText, Payload: []byte(before)},
			wsframe.Frame{First: wsframe.OpContinuation, Payload: []byte(bad[:1])},
			wsframe.Frame{First: wsframe.Final | wsframe.OpContinuation, Payload: []byte(bad[1:] + after)})
	}
}
