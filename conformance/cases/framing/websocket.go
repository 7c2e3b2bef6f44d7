package framing

import (
	"errors"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
	"github.com/listwatch/listwatch/framing"
)

func wsOneMessageOneEvent(e *harness.Env) {
	const burst = 50
	before := e.Put("before")
	var want []string
	a, behind := e.WatchRaw(harness.From(before)), (*harness.Response)(nil)
	a.WantAccepted()
	for range burst {
		e.Put("a", "size", "small")
		want = append(want, "MODIFIED a")
	}
	want[0] = "ADDED a"
	e.PutJSON("large", `{"text":"`+strings.Repeat("0123456789abcdef", 16<<10)+`"}`)
	want = append(want, "ADDED large", "ADDED "+e.PutSentinel())
	behind = e.WatchRaw(harness.From(before)) // gets all at once
	behind.WantAccepted()
	for name, a := range map[string]*harness.Response{"live": a, "behind": behind} {
		for i, want := range want {
			op, text := a.ReadMessage()
			if got := harness.LineOf(text); op != wsframe.OpText || got != want {
				e.Fatalf("%s: message %d has opcode %d and %.200s, want %s as text", name, i, op, got, want)
			}
		}
	}
}

func wsOpcode(e *harness.Env) {
	before := e.Put("before")
	e.Put("a")
	for mediaType, want := range map[string]byte{harness.JSONMediaType: wsframe.OpText, (framing.CBORSeq{}).MediaType(): wsframe.OpBinary} {
		a := e.WatchRaw(harness.From(before), "Accept", mediaType)
		if a.Status == 406 && !e.Can(harness.InProcess) {
			e.Logf("the server does not offer %s", mediaType)
			continue
		}
		a.WantAccepted()
		if op, payload := a.ReadMessage(); op != want {
			e.Errorf("%s: got opcode %d with %q, want %d", mediaType, op, payload, want)
		}
	}
}

func wsFragmentedIn(e *harness.Env) {
	const event = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"é€𝄞"}}`
	accent := strings.Index(event, "€") + 1 // within the letter
	ponged := make(chan string, 1)
	pings := func(p *harness.ScriptedServer) {
		p.SendFrame(wsframe.Frame{First: wsframe.OpText, Payload: []byte(event[:30])})
		p.SendFrame(wsframe.Whole(wsframe.OpPing, "are you there?"))
		p.SendFrame(wsframe.Frame{First: wsframe.OpContinuation, Payload: []byte(event[30:accent])})
		p.SendFrame(wsframe.Frame{First: wsframe.OpContinuation})
		p.SendFrame(wsframe.Whole(wsframe.OpPong, "nobody asked"))
		p.SendFrame(wsframe.Frame{First: wsframe.Final | wsframe.OpContinuation, Payload: []byte(event[accent:])})
		f, err := wsframe.Read(p.In)
		if err != nil || f.Opcode() != wsframe.OpPong {
			ponged <- "no pong"
			return
		}
		ponged <- string(f.Payload)
	}
	s := e.StartScript(harness.JSONMediaType, pings, harness.EndCleanly).Dial("")
	if got := s.Want("ADDED a")[0].Object.Data; !strings.Contains(string(got), `"text":"é€𝄞"`) {
		e.Errorf("got %s, want the text as it was sent", got)
	}
	s.WantEnd()
	if got := <-ponged; got != "are you there?" {
		e.Errorf("got %q, want a pong with the ping's text", got)
	}
}

// violates has frames sent by a client, masked, where the server is to close with code, and by a server, where the client is to do
// so.
func violates(e *harness.Env, what string, code int, broken ...wsframe.Frame) {
	e.Helper()
	a := e.WatchRaw("")
	a.WantAccepted()
	for _, f := range broken {
		f.Masked = !f.Masked
		_, _ = a.Conn.Write(f.Bytes()) // it may be closed by now
	}
	if got, err := wsframe.ReadCloseCode(a.Body); err != nil || got != code {
		e.Errorf("%s: the server closes with %d, %v; want %d", what, got, err, code)
	}
	if e.Can(harness.InProcess) {
		clientRefuses(e, what, code, broken...)
	}
}

func clientRefuses(e *harness.Env, what string, code int, broken ...wsframe.Frame) {
	e.Helper()
	type goodbye struct {
		code int
		err  error
	}
	closed := make(chan goodbye, 1)
	s := e.StartScriptOnAnyTarget(harness.JSONMediaType, harness.SendFrames(broken...), func(p *harness.ScriptedServer) {
		got, err := wsframe.ReadCloseCode(p.In)
		closed <- goodbye{got, err}
	}).Dial("")
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("%s: got %s %s, %v; want an error of code Corrupt", what, w.Type, w.Object, err)
	}
	if got := <-closed; got.code != code || got.err != nil {
		e.Errorf("%s: the client closes with %d, %v; want %d", what, got.code, got.err, code)
	}
}

func wsUnmaskedServer(e *harness.Env) {
	before := e.Put("before")
	e.Put("a")
	a := e.WatchRaw(harness.From(before))
	a.WantAccepted()
	a.ReadMessage() // fails where it is masked
	violates(e, "a ping masked by a server, or not by a client", wsframe.CloseProtocolError, wsframe.Frame{First: wsframe.Final | wsframe.OpPing, Masked: true})
	if !e.Can(harness.InProcess) {
		return
	}
	masked := make(chan bool, 1)
	s := e.StartScriptOnAnyTarget(harness.JSONMediaType, harness.SendFrames(wsframe.Whole(wsframe.OpPing, "")), func(p *harness.ScriptedServer) {
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
		violates(e, "a ping with reserved bits", wsframe.CloseProtocolError, wsframe.Frame{First: wsframe.Final | bit | wsframe.OpPing})
		violates(e, "a message with reserved bits", wsframe.CloseProtocolError, wsframe.Frame{First: wsframe.Final | bit | wsframe.OpText, Payload: []byte(harness.EventJSON("ADDED", "a", "5"))})
	}
}

func wsControlRules(e *harness.Env) {
	for _, op := range []byte{wsframe.OpPing, wsframe.OpPong, wsframe.OpClose} {
		violates(e, "a control frame of 126 bytes", wsframe.CloseProtocolError, wsframe.Whole(op, "\x03\xe8"+strings.Repeat("x", 124)))
		violates(e, "a control frame in fragments", wsframe.CloseProtocolError, wsframe.Frame{First: op, Payload: []byte("\x03\xe8")}, wsframe.Frame{First: wsframe.Final | wsframe.OpContinuation})
	}
	for _, op := range []byte{3, 7, 11, 15} {
		violates(e, "an unknown opcode", wsframe.CloseProtocolError, wsframe.Whole(op, ""))
	}
}

// badUTF8 are texts that are none, as the Autobahn suite has them in 6.3 and 6.4.
var badUTF8 = []string{"\xce\xba\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xff", "\xe2\x82"}

func wsBadUTF8(e *harness.Env) {
	const before, behind = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"`, `"}}`
	for _, bad := range badUTF8 {
		e.Use(harness.InProcess)
		clientRefuses(e, "text that is not UTF-8", wsframe.CloseInvalidData, wsframe.Whole(wsframe.OpText, before+bad+behind))
		clientRefuses(e, "text that is not UTF-8, in fragments", wsframe.CloseInvalidData,
			wsframe.Frame{First: wsframe.OpText, Payload: []byte(before)}, wsframe.Frame{First: wsframe.OpContinuation, Payload: []byte(bad[:1])},
			wsframe.Frame{First: wsframe.Final | wsframe.OpContinuation, Payload: []byte(bad[1:] + behind)})
	}
}
