package compression

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
	"github.com/listwatch/listwatch/transport"
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
		messages = append(messages, bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte(harness.SyncMarker))))
		b.Reset()
	}
	return messages
}

// inflate reads a message that refers to none before it (section 7.2.2).
func inflate(message []byte) (string, error) {
	// The last block, which is empty, is there for the reader to find its end.
	text, err := io.ReadAll(flate.NewReader(strings.NewReader(string(message) + harness.SyncMarker + "\x01\x00\x00\xff\xff")))
	return string(text), err
}

// An offered watch is one over a WebSocket for which compression was offered.
type offered struct {
	*harness.Response
	offer  string
	agreed bool
}

// offerDeflate opens a watch by hand and offers what is named. The answer, where there is one, must be to permessage-deflate.
func offerDeflate(e *harness.Env, start listwatch.Version, offer string) *offered {
	e.Helper()
	a := e.WatchRaw(harness.From(start), harness.WebSocketExtensions, offer)
	got := a.WantAccepted().Values(harness.WebSocketExtensions)
	name, _, _ := strings.Cut(strings.Join(got, ","), ";")
	if len(got) > 0 && strings.TrimSpace(name) != harness.Deflate {
		e.Errorf("%q is answered with %q", offer, got)
	}
	return &offered{a, offer, len(got) > 0}
}

// event reads a message and returns it inflated. RSV1 says that it was compressed, on its first frame alone and where that was agreed to.
func (o *offered) event() (text string, compressed bool) {
	o.Helper()
	var payload []byte
	for begun := false; ; {
		f, err := wsframe.Read(o.Body)
		if err != nil {
			o.Fatalf("%q: read a message: %v", o.offer, err)
		}
		reserved, control := f.First&(wsframe.RSV1|wsframe.RSV2|wsframe.RSV3), f.Opcode() >= wsframe.OpClose
		if reserved != 0 && (!o.agreed || begun || control || reserved != wsframe.RSV1) {
			o.Fatalf("%q: got a frame that begins %#02x", o.offer, f.First)
		}
		if control {
			continue
		}
		if !begun {
			begun, compressed = true, reserved != 0
		}
		if payload = append(payload, f.Payload...); f.First&wsframe.Final != 0 {
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
		v := o.PutJSON("a", fmt.Sprintf(`{"n":%d,"text":%q}`, i, text))
		got, compressed := o.event()
		if !strings.HasPrefix(got, `{"type":"`) || !strings.Contains(got, `"resourceVersion":"`+v.String()+`"`) || !strings.Contains(got, `"text":"`+text+`"`) {
			o.Fatalf("%q: got %.200q, want the event of version %d", o.offer, got, v)
		}
		if ours := o.Can(harness.InProcess) && compression(o.Response.Env) != ""; ours && o.agreed && !compressed && len(text) > 0 {
			o.Errorf("%q: an event of %d bytes is not compressed", o.offer, len(got))
		}
	}
}

func wsDeflate(e *harness.Env) {
	for offer, fits := range map[string]bool{
		"": false, "x-webkit-deflate-frame": false, "permessage-bzip2": false, "foo; bar=1": false,
		harness.Deflate: true, harness.DeflateNoContext: true, harness.Deflate + "; client_max_window_bits": true, "foo; bar=1, " + harness.Deflate: true,
	} {
		o := offerDeflate(e, e.Put("start"), offer)
		if o.agreed && !fits {
			e.Errorf("the server agrees to %q", offer)
		}
		if fits && !o.agreed && e.Can(harness.InProcess) && compression(e) != "" {
			e.Errorf("the server declines %q", offer)
		}
		o.wantEvents()
	}
	if e.Can(harness.InProcess) {
		clientInflates(e)
	}
}

// deflating returns e with a site that agrees and then plays.
func deflating(e *harness.Env, agrees string, do ...harness.Step) *harness.Env {
	return e.Via(e.ServeOnAnyTarget(e.ScriptedWithHeader(harness.ResponseHeader{ContentType: harness.JSONMediaType, Extra: []string{harness.WebSocketExtensions, agrees}}, do...)))
}

var compressing = transport.Request{Codings: transport.Codings()}

// clientInflates has a client read messages compressed and not, whole and in fragments, and then what is none.
func clientInflates(e *harness.Env) {
	e.Helper()
	text := func(name string) string { return harness.EventJSON("ADDED", name, "5") }
	a, b := deflate(text("a"))[0], deflate(text("b"))[0]
	sound := []wsframe.Frame{
		{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: a},
		{First: wsframe.RSV1 | wsframe.OpText, Payload: b[:3]},
		wsframe.Whole(wsframe.OpPing, "?"),
		{First: wsframe.OpContinuation, Payload: b[3:7]},
		{First: wsframe.Final | wsframe.OpContinuation, Payload: b[7:]},
		wsframe.Whole(wsframe.OpText, text("c")),
		{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: a},
	}
	s := deflating(e, harness.DeflateNoContext, harness.SendFrames(sound...), harness.CloseWith(wsframe.CloseNormal)).DialRequest("", compressing)
	s.Want("ADDED a", "ADDED b", "ADDED c", "ADDED a")
	s.WantEnd()
	for what, bad := range map[string][]wsframe.Frame{
		"RSV1 on the second frame":  {{First: wsframe.OpText, Payload: []byte(`{"type"`)}, {First: wsframe.Final | wsframe.RSV1 | wsframe.OpContinuation, Payload: a}},
		"RSV1 on a ping":            {{First: wsframe.Final | wsframe.RSV1 | wsframe.OpPing, Payload: []byte("?")}},
		"RSV2":                      {{First: wsframe.Final | wsframe.RSV1 | wsframe.RSV2 | wsframe.OpText, Payload: a}},
		"RSV1 on what is no blocks": {{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: []byte(text("c"))}},
		"half a message":            {{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: a[:len(a)/2]}},
	} {
		s := deflating(e, harness.DeflateNoContext, harness.SendFrames(bad...), harness.StayOpen).DialRequest("", compressing)
		if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s: got %s %s, %v; want an error of code Corrupt", what, w.Type, w.Object, err)
		}
		s.Close()
	}
}

func wsNoContext(e *harness.Env) {
	for _, offer := range []string{harness.DeflateNoContext, harness.Deflate + "; server_no_context_takeover", harness.DeflateNoContext + "; client_max_window_bits=15"} {
		o := offerDeflate(e, e.Put("start"), offer)
		if got := o.Headers.Get(harness.WebSocketExtensions); o.agreed && !strings.Contains(got, "server_no_context_takeover") {
			e.Errorf("%q is answered with %q, want server_no_context_takeover in it", offer, got)
		}
		o.wantEvents()
	}
	if !e.Can(harness.InProcess) {
		return
	}
	asked := make(chan string, 1)
	plays := e.ScriptedWithHeader(harness.ResponseHeader{ContentType: harness.JSONMediaType, Extra: []string{harness.WebSocketExtensions, harness.Deflate}}, harness.StayOpen)
	keeps := e.Via(e.ServeOnAnyTarget(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get(harness.WebSocketExtensions)
		plays(w, r)
	})))
	if s, err := keeps.TryDial("", compressing); err == nil {
		e.Errorf("the client takes a server that keeps context, though it asked for none")
		s.Close()
	}
	if got := <-asked; !strings.Contains(got, "server_no_context_takeover") || !strings.Contains(got, "client_no_context_takeover") {
		e.Errorf("the client offers %q, want it to keep no context and to ask for none", got)
	}
	var refers []wsframe.Frame
	for _, message := range deflate(harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("ADDED", "a", "5")) {
		refers = append(refers, wsframe.Frame{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: message})
	}
	s := deflating(e, harness.DeflateNoContext, harness.SendFrames(refers...), harness.StayOpen).DialRequest("", compressing)
	s.Want("ADDED a")
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("a message that refers to the one before: got %s %s, %v; want an error of code Corrupt", w.Type, w.Object, err)
	}
}

func wsDeclined(e *harness.Env) {
	for _, params := range []string{
		"unknown", "server_no_context_takeover; server_no_context_takeover", "server_no_context_takeover=1", "client_max_window_bits=16",
		"client_max_window_bits=7", "client_max_window_bits=08", "server_max_window_bits", "server_max_window_bits=0",
	} {
		o := offerDeflate(e, e.Put("start"), harness.Deflate+"; "+params)
		if o.agreed {
			e.Errorf("%q: the server agrees by %q", o.offer, o.Headers.Get(harness.WebSocketExtensions))
		}
		o.wantEvents()
	}
	if !e.Can(harness.InProcess) {
		return
	}
	s := e.Via(e.ServeOnAnyTarget(e.Scripted(harness.JSONMediaType, harness.SendPieces(harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("ADDED", "b", "6")), harness.EndCleanly))).DialRequest("", compressing)
	s.Want("ADDED a", "ADDED b")
	s.WantEnd()
	s = e.Via(e.ServeOnAnyTarget(e.Scripted(harness.JSONMediaType, harness.SendFrames(wsframe.Frame{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: deflate(harness.EventJSON("ADDED", "a", "5"))[0]}), harness.StayOpen))).
		DialRequest("", compressing)
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("RSV1 that was not agreed to: got %s %s, %v; want an error of code Corrupt", w.Type, w.Object, err)
	}
	for _, answer := range []string{harness.DeflateNoContext + "; unknown", harness.DeflateNoContext + ", " + harness.DeflateNoContext, "foo", harness.DeflateNoContext + "; server_max_window_bits=99"} {
		if s, err := deflating(e, answer, harness.StayOpen).TryDial("", compressing); err == nil {
			e.Errorf("the client takes %q for an answer", answer)
			s.Close()
		}
	}
}
