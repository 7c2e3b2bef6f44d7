package cases

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

const (
	extensions  = "Sec-WebSocket-Extensions"
	deflateName = "permessage-deflate"
	noContext   = deflateName + "; server_no_context_takeover; client_no_context_takeover"
	syncMarker  = "\x00\x00\xff\xff"
)

// deflate returns texts as messages of RFC 7692, section 7.2.1, of which each may refer to those before it.
func deflate(texts ...string) (messages [][]byte) {
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil // there is that level
	}
	for _, text := range texts {
		_, _ = io.WriteString(z, text) // a Buffer takes everything
		_ = z.Flush()
		messages = append(messages, bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte(syncMarker))))
		b.Reset()
	}
	return messages
}

// inflate reads a message that refers to none before it (section 7.2.2).
func inflate(message []byte) (string, error) {
	// The last block, which is empty, is there for the reader to find its end.
	text, err := io.ReadAll(flate.NewReader(strings.NewReader(string(message) + syncMarker + "\x01\x00\x00\xff\xff")))
	return string(text), err
}

// An offered watch is one over a WebSocket for which compression was offered.
type offered struct {
	*answer
	offer  string
	agreed bool
}

// offer opens a watch by hand and offers what is named. The answer, where there is one, must be to permessage-deflate.
func (e *env) offer(start listwatch.Version, offer string) *offered {
	e.Helper()
	a := e.watch(from(start), extensions, offer)
	got := a.accepted().Values(extensions)
	name, _, _ := strings.Cut(strings.Join(got, ","), ";")
	if len(got) > 0 && strings.TrimSpace(name) != deflateName {
		e.Errorf("%q is answered with %q", offer, got)
	}
	return &offered{a, offer, len(got) > 0}
}

// event reads a message and returns it inflated. RSV1 says that it was compressed, on its first frame alone and where that was agreed to.
func (o *offered) event() (text string, compressed bool) {
	o.Helper()
	var payload []byte
	for begun := false; ; {
		f, err := readFrame(o.body)
		if err != nil {
			o.Fatalf("%q: read a message: %v", o.offer, err)
		}
		reserved, control := f.first&(bitRSV1|bitRSV2|bitRSV3), f.op() >= opClose
		if reserved != 0 && (!o.agreed || begun || control || reserved != bitRSV1) {
			o.Fatalf("%q: got a frame that begins %#02x", o.offer, f.first)
		}
		if control {
			continue
		}
		if !begun {
			begun, compressed = true, reserved != 0
		}
		if payload = append(payload, f.payload...); f.first&bitFinal != 0 {
			break
		}
	}
	if !compressed {
		return string(payload), false
	}
	text, err := inflate(payload)
	if err != nil {
		o.Fatalf("%q: got %x, which can't be inflated by itself: %v", o.offer, payload, err)
	}
	return text, true
}

// wantEvents writes events that compress well and reads them.
func (o *offered) wantEvents() {
	o.Helper()
	for i, words := range []int{0, 300, 300, 20_000} {
		text := strings.Repeat("listwatch ", words)
		v := o.putText("a", fmt.Sprintf(`{"n":%d,"text":%q}`, i, text))
		got, compressed := o.event()
		if !strings.HasPrefix(got, `{"type":"`) || !strings.Contains(got, `"resourceVersion":"`+v.String()+`"`) || !strings.Contains(got, `"text":"`+text+`"`) {
			o.Fatalf("%q: got %.200q, want the event of version %d", o.offer, got, v)
		}
		if ours := o.can(InProcess) && o.compression() != ""; ours && o.agreed && !compressed && len(text) > 0 {
			o.Errorf("%q: an event of %d bytes is not compressed", o.offer, len(got))
		}
	}
}

func wsDeflate(e *env) {
	for offer, fits := range map[string]bool{
		"": false, "x-webkit-deflate-frame": false, "permessage-bzip2": false, "foo; bar=1": false,
		deflateName: true, noContext: true, deflateName + "; client_max_window_bits": true, "foo; bar=1, " + deflateName: true,
	} {
		o := e.offer(e.put("start"), offer)
		if o.agreed && !fits {
			e.Errorf("the server agrees to %q", offer)
		}
		if fits && !o.agreed && e.can(InProcess) && e.compression() != "" {
			e.Errorf("the server declines %q", offer)
		}
		o.wantEvents()
	}
	if e.can(InProcess) {
		e.clientInflates()
	}
}

// deflating returns e with a site that agrees and then plays.
func (e *env) deflating(agrees string, do ...part) *env {
	return e.at(e.openAny(e.byHandAs(head{contentType: jsonType, more: []string{extensions, agrees}}, do...)))
}

var compressing = transport.Request{Codings: transport.Codings()}

// clientInflates has a client read messages compressed and not, whole and in fragments, and then what is none.
func (e *env) clientInflates() {
	e.Helper()
	text := func(name string) string { return tiny("ADDED", name, "5") }
	a, b := deflate(text("a"))[0], deflate(text("b"))[0]
	sound := []wsFrame{
		{first: bitFinal | bitRSV1 | opText, payload: a},
		{first: bitRSV1 | opText, payload: b[:3]},
		whole(opPing, "?"),
		{first: opContinuation, payload: b[3:7]},
		{first: bitFinal | opContinuation, payload: b[7:]},
		whole(opText, text("c")),
		{first: bitFinal | bitRSV1 | opText, payload: a},
	}
	s := e.deflating(noContext, frames(sound...), closes(closedNormally)).dialAs("", compressing)
	s.want("ADDED a", "ADDED b", "ADDED c", "ADDED a")
	s.wantEnd()
	for what, bad := range map[string][]wsFrame{
		"RSV1 on the second frame":  {{first: opText, payload: []byte(`{"type"`)}, {first: bitFinal | bitRSV1 | opContinuation, payload: a}},
		"RSV1 on a ping":            {{first: bitFinal | bitRSV1 | opPing, payload: []byte("?")}},
		"RSV2":                      {{first: bitFinal | bitRSV1 | bitRSV2 | opText, payload: a}},
		"RSV1 on what is no blocks": {{first: bitFinal | bitRSV1 | opText, payload: []byte(text("c"))}},
		"half a message":            {{first: bitFinal | bitRSV1 | opText, payload: a[:len(a)/2]}},
	} {
		s := e.deflating(noContext, frames(bad...), stays).dialAs("", compressing)
		if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s: got %s %s, %v; want an error of code Corrupt", what, w.Type, w.Object, err)
		}
		s.Close()
	}
}

func wsNoContext(e *env) {
	for _, offer := range []string{noContext, deflateName + "; server_no_context_takeover", noContext + "; client_max_window_bits=15"} {
		o := e.offer(e.put("start"), offer)
		if got := o.header.Get(extensions); o.agreed && !strings.Contains(got, "server_no_context_takeover") {
			e.Errorf("%q is answered with %q, want server_no_context_takeover in it", offer, got)
		}
		o.wantEvents()
	}
	if !e.can(InProcess) {
		return
	}
	asked := make(chan string, 1)
	plays := e.byHandAs(head{contentType: jsonType, more: []string{extensions, deflateName}}, stays)
	keeps := e.at(e.openAny(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get(extensions)
		plays(w, r)
	})))
	if s, err := keeps.tryDial("", compressing); err == nil {
		e.Errorf("the client takes a server that keeps context, though it asked for none")
		s.Close()
	}
	if got := <-asked; !strings.Contains(got, "server_no_context_takeover") || !strings.Contains(got, "client_no_context_takeover") {
		e.Errorf("the client offers %q, want it to keep no context and to ask for none", got)
	}
	var refers []wsFrame
	for _, message := range deflate(tiny("ADDED", "a", "5"), tiny("ADDED", "a", "5")) {
		refers = append(refers, wsFrame{first: bitFinal | bitRSV1 | opText, payload: message})
	}
	s := e.deflating(noContext, frames(refers...), stays).dialAs("", compressing)
	s.want("ADDED a")
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("a message that refers to the one before: got %s %s, %v; want an error of code Corrupt", w.Type, w.Object, err)
	}
}

func wsDeclined(e *env) {
	for _, params := range []string{
		"unknown", "server_no_context_takeover; server_no_context_takeover", "server_no_context_takeover=1", "client_max_window_bits=16",
		"client_max_window_bits=7", "client_max_window_bits=08", "server_max_window_bits", "server_max_window_bits=0",
	} {
		o := e.offer(e.put("start"), deflateName+"; "+params)
		if o.agreed {
			e.Errorf("%q: the server agrees by %q", o.offer, o.header.Get(extensions))
		}
		o.wantEvents()
	}
	if !e.can(InProcess) {
		return
	}
	s := e.at(e.openAny(e.byHand(jsonType, pieces(tiny("ADDED", "a", "5"), tiny("ADDED", "b", "6")), ends))).dialAs("", compressing)
	s.want("ADDED a", "ADDED b")
	s.wantEnd()
	s = e.at(e.openAny(e.byHand(jsonType, frames(wsFrame{first: bitFinal | bitRSV1 | opText, payload: deflate(tiny("ADDED", "a", "5"))[0]}), stays))).
		dialAs("", compressing)
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("RSV1 that was not agreed to: got %s %s, %v; want an error of code Corrupt", w.Type, w.Object, err)
	}
	for _, answer := range []string{noContext + "; unknown", noContext + ", " + noContext, "foo", noContext + "; server_max_window_bits=99"} {
		if s, err := e.deflating(answer, stays).tryDial("", compressing); err == nil {
			e.Errorf("the client takes %q for an answer", answer)
			s.Close()
		}
	}
}
