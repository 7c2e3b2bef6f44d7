package cases

import (
	"errors"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

func wsOneMessageOneEvent(e *env) {
	const burst = 50
	before := e.put("before")
	var want []string
	a, behind := e.watch(from(before)), (*answer)(nil)
	a.accepted()
	for range burst {
		e.put("a", "size", "small")
		want = append(want, "MODIFIED a")
	}
	want[0] = "ADDED a"
	e.putText("large", `{"text":"`+strings.Repeat("0123456789abcdef", 16<<10)+`"}`)
	want = append(want, "ADDED large", "ADDED "+e.sentinel())
	behind = e.watch(from(before)) // gets all at once
	behind.accepted()
	for name, a := range map[string]*answer{"live": a, "behind": behind} {
		for i, want := range want {
			op, text := a.message()
			if got := lineOf(text); op != opText || got != want {
				e.Fatalf("%s: message %d has opcode %d and %.200s, want %s as text", name, i, op, got, want)
			}
		}
	}
}

func wsOpcode(e *env) {
	before := e.put("before")
	e.put("a")
	for mediaType, want := range map[string]byte{jsonType: opText, (framing.CBORSeq{}).MediaType(): opBinary} {
		a := e.watch(from(before), "Accept", mediaType)
		if a.status == 406 && !e.can(InProcess) {
			e.Logf("the server does not offer %s", mediaType)
			continue
		}
		a.accepted()
		if op, payload := a.message(); op != want {
			e.Errorf("%s: got opcode %d with %q, want %d", mediaType, op, payload, want)
		}
	}
}

func wsFragmentedIn(e *env) {
	const event = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"é€𝄞"}}`
	accent := strings.Index(event, "€") + 1 // within the letter
	ponged := make(chan string, 1)
	pings := func(p *peer) {
		p.frame(wsFrame{first: opText, payload: []byte(event[:30])})
		p.frame(whole(opPing, "are you there?"))
		p.frame(wsFrame{first: opContinuation, payload: []byte(event[30:accent])})
		p.frame(wsFrame{first: opContinuation})
		p.frame(whole(opPong, "nobody asked"))
		p.frame(wsFrame{first: bitFinal | opContinuation, payload: []byte(event[accent:])})
		f, err := readFrame(p.in)
		if err != nil || f.op() != opPong {
			ponged <- "no pong"
			return
		}
		ponged <- string(f.payload)
	}
	s := e.hand(jsonType, pings, ends).dial("")
	if got := s.want("ADDED a")[0].Object.Data; !strings.Contains(string(got), `"text":"é€𝄞"`) {
		e.Errorf("got %s, want the text as it was sent", got)
	}
	s.wantEnd()
	if got := <-ponged; got != "are you there?" {
		e.Errorf("got %q, want a pong with the ping's text", got)
	}
}

// violates has frames sent by a client, masked, where the server is to close with code, and by a server, where the client is to do
// so.
func (e *env) violates(what string, code int, broken ...wsFrame) {
	e.Helper()
	a := e.watch("")
	a.accepted()
	for _, f := range broken {
		f.masked = !f.masked
		_, _ = a.conn.Write(f.bytes()) // it may be closed by now
	}
	if got, err := closeCode(a.body); err != nil || got != code {
		e.Errorf("%s: the server closes with %d, %v; want %d", what, got, err, code)
	}
	if e.can(InProcess) {
		e.clientRefuses(what, code, broken...)
	}
}

func (e *env) clientRefuses(what string, code int, broken ...wsFrame) {
	e.Helper()
	type goodbye struct {
		code int
		err  error
	}
	closed := make(chan goodbye, 1)
	s := e.stage(jsonType, frames(broken...), func(p *peer) {
		got, err := closeCode(p.in)
		closed <- goodbye{got, err}
	}).dial("")
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("%s: got %s %s, %v; want an error of code Corrupt", what, w.Type, w.Object, err)
	}
	if got := <-closed; got.code != code || got.err != nil {
		e.Errorf("%s: the client closes with %d, %v; want %d", what, got.code, got.err, code)
	}
}

func wsUnmaskedServer(e *env) {
	before := e.put("before")
	e.put("a")
	a := e.watch(from(before))
	a.accepted()
	a.message() // fails where it is masked
	e.violates("a ping masked by a server, or not by a client", closedProtocol, wsFrame{first: bitFinal | opPing, masked: true})
	if !e.can(InProcess) {
		return
	}
	masked := make(chan bool, 1)
	s := e.stage(jsonType, frames(whole(opPing, "")), func(p *peer) {
		f, err := readFrame(p.in)
		masked <- err == nil && f.masked
	}, ends).dial("")
	s.wantEnd()
	if !<-masked {
		e.Error("the client does not mask its pong")
	}
}

func wsRSV(e *env) {
	for _, bit := range []byte{bitRSV1, bitRSV2, bitRSV3, bitRSV1 | bitRSV2 | bitRSV3} {
		e.violates("a ping with reserved bits", closedProtocol, wsFrame{first: bitFinal | bit | opPing})
		e.violates("a message with reserved bits", closedProtocol, wsFrame{first: bitFinal | bit | opText, payload: []byte(tiny("ADDED", "a", "5"))})
	}
}

func wsControlRules(e *env) {
	for _, op := range []byte{opPing, opPong, opClose} {
		e.violates("a control frame of 126 bytes", closedProtocol, whole(op, "\x03\xe8"+strings.Repeat("x", 124)))
		e.violates("a control frame in fragments", closedProtocol, wsFrame{first: op, payload: []byte("\x03\xe8")}, wsFrame{first: bitFinal | opContinuation})
	}
	for _, op := range []byte{3, 7, 11, 15} {
		e.violates("an unknown opcode", closedProtocol, whole(op, ""))
	}
}

// badUTF8 are texts that are none, as the Autobahn suite has them in 6.3 and 6.4.
var badUTF8 = []string{"\xce\xba\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xff", "\xe2\x82"}

func wsBadUTF8(e *env) {
	const before, behind = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"`, `"}}`
	for _, bad := range badUTF8 {
		e.use(InProcess)
		e.clientRefuses("text that is not UTF-8", closedBadText, whole(opText, before+bad+behind))
		e.clientRefuses("text that is not UTF-8, in fragments", closedBadText,
			wsFrame{first: opText, payload: []byte(before)}, wsFrame{first: opContinuation, payload: []byte(bad[:1])},
			wsFrame{first: bitFinal | opContinuation, payload: []byte(bad[1:] + behind)})
	}
}
