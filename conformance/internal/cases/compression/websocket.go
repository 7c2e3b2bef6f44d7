package compression

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/transport"
)

// deflate compresses texts into messages (RFC 7692, section 7.2.1). The messages share one
// context, so each may refer to earlier ones.
func deflate(texts ...string) (messages [][]byte) {
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil // unreachable: the level is valid
	}
	for _, text := range texts {
		_, _ = io.WriteString(z, text) // writing to a Buffer never fails
		_ = z.Flush()
		messages = append(messages, bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte(harness.SyncMarker))))
		b.Reset()
	}
	return messages
}

// inflate decompresses a message (RFC 7692, section 7.2.2). The message may refer to history, the
// text of the earlier compressed messages.
func inflate(message []byte, history string) (string, error) {
	// The empty final block marks the end for the reader.
	all := strings.NewReader(string(message) + harness.SyncMarker + "\x01\x00\x00\xff\xff")
	text, err := io.ReadAll(flate.NewReaderDict(all, []byte(history)))
	return string(text), err
}

// A deflateWatch is a WebSocket watch whose handshake offered compression.
type deflateWatch struct {
	*harness.Response
	offer    string
	accepted bool
	// If takeover is true, messages may refer to earlier messages, and history is the text of the
	// compressed messages so far.
	takeover bool
	history  string
}

// offerDeflate opens a watch with a raw request and offers the given WebSocket extensions. The
// server may accept no extension except permessage-deflate.
func offerDeflate(e *harness.Env, start listwatch.Version, offer string) *deflateWatch {
	e.Helper()
	a := e.WatchRaw(harness.From(start), harness.WebSocketExtensions, offer)
	got := a.WantAccepted().Values(harness.WebSocketExtensions)
	name, _, _ := strings.Cut(strings.Join(got, ","), ";")
	if len(got) > 0 && strings.TrimSpace(name) != harness.Deflate {
		e.Errorf("offered %q: the server selected %q, want permessage-deflate or nothing", offer, got)
	}
	takeover := !strings.Contains(offer+strings.Join(got, ","), "server_no_context_takeover")
	return &deflateWatch{Response: a, offer: offer, accepted: len(got) > 0, takeover: takeover}
}

// event reads a message and inflates it if RSV1 marks it as compressed. RSV1 is allowed only on the
// first frame of a message, and only if the server has accepted the offer.
func (d *deflateWatch) event() (text string, compressed bool) {
	d.Helper()
	var payload []byte
	for started := false; ; {
		f, err := wsframe.Read(d.Body)
		if err != nil {
			d.Fatalf("%q: read a message: %v", d.offer, err)
		}
		reserved, control := f.First&(wsframe.RSV1|wsframe.RSV2|wsframe.RSV3), f.Opcode() >= wsframe.OpClose
		if reserved != 0 && (!d.accepted || started || control || reserved != wsframe.RSV1) {
			d.Fatalf("%q: got a frame with unexpected reserved bits in its first byte, %#02x", d.offer, f.First)
		}
		if control {
			continue
		}
		if !started {
			started, compressed = true, reserved != 0
		}
		if payload = append(payload, f.Payload...); f.First&wsframe.Final != 0 {
			break
		}
	}
	if !compressed {
		return string(payload), false
	}
	text, err := inflate(payload, d.history)
	if err != nil {
		d.Fatalf("%q: message %x cannot be inflated after %d bytes of history: %v", d.offer,
			payload, len(d.history), err)
	}
	if d.takeover {
		d.history += text
	}
	return text, true
}

// wantEvents writes events that compress well and checks that they arrive.
func (d *deflateWatch) wantEvents() {
	d.Helper()
	for i, words := range []int{0, 300, 300, 7000} {
		text := strings.Repeat("listwatch ", words)
		v := d.PutJSON("a", fmt.Sprintf(`{"n":%d,"text":%q}`, i, text))
		got, compressed := d.event()
		if !isWrite(got, v, text) {
			d.Fatalf("%q: got %.200q, want the event of version %d", d.offer, got, v)
		}
		if mustCompress := d.Supports(harness.InProcess) && defaultCompression(d.Response.Env) != ""; mustCompress &&
			d.accepted && !compressed && len(text) > 0 {
			d.Errorf("%q: got an uncompressed event of %d bytes, want it compressed", d.offer, len(got))
		}
	}
}

// isWrite reports whether event, in JSON, has version v and contains text as a string.
func isWrite(event string, v listwatch.Version, text string) bool {
	var got struct {
		Type   string
		Object struct {
			Metadata struct{ ResourceVersion string }
		}
	}
	return json.Unmarshal([]byte(event), &got) == nil && got.Type != "" &&
		got.Object.Metadata.ResourceVersion == v.String() && strings.Contains(event, `"`+text+`"`)
}

func wsDeflate(e *harness.Env) {
	for offer, acceptable := range map[string]bool{
		"": false, "x-webkit-deflate-frame": false, "permessage-bzip2": false, "foo; bar=1": false,
		harness.Deflate: true, harness.DeflateNoContext: true, harness.Deflate + "; client_max_window_bits": true,
		"foo; bar=1, " + harness.Deflate: true,
	} {
		o := offerDeflate(e, e.Put("start"), offer)
		if o.accepted && !acceptable {
			e.Errorf("the server accepts %q, want it declined", offer)
		}
		if acceptable && !o.accepted && e.Supports(harness.InProcess) && defaultCompression(e) != "" {
			e.Errorf("the server declines %q, want it accepted", offer)
		}
		o.wantEvents()
	}
	if e.Supports(harness.InProcess) {
		checkClientInflates(e)
	}
}

// serveDeflate returns a copy of e that uses a scripted server. The server selects the given
// WebSocket extensions in its handshake response, and then performs the steps.
func serveDeflate(e *harness.Env, extensions string, steps ...harness.Step) *harness.Env {
	return e.WithRoute(e.ServeOnAnyTarget(e.ScriptedWithHeader(harness.ResponseHeader{
		ContentType: harness.JSONMediaType, Extra: []string{harness.WebSocketExtensions, extensions},
	}, steps...)))
}

// anyCoding is the request of a client that accepts every coding.
var anyCoding = transport.Request{Codings: transport.Codings()}

// checkClientInflates checks that the client reads compressed and uncompressed messages,
// whole and in fragments, and rejects invalid ones.
func checkClientInflates(e *harness.Env) {
	e.Helper()
	text := func(name string) string { return harness.EventJSON("ADDED", name, "5") }
	a, b := deflate(text("a"))[0], deflate(text("b"))[0]
	valid := []wsframe.Frame{
		{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: a},
		{First: wsframe.RSV1 | wsframe.OpText, Payload: b[:3]},
		wsframe.Unfragmented(wsframe.OpPing, "?"),
		{First: wsframe.OpContinuation, Payload: b[3:7]},
		{First: wsframe.Final | wsframe.OpContinuation, Payload: b[7:]},
		wsframe.Unfragmented(wsframe.OpText, text("c")),
		{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: a},
	}
	s := serveDeflate(e, harness.DeflateNoContext, harness.SendFrames(valid...),
		harness.CloseWith(wsframe.CloseNormal)).DialRequest("", anyCoding)
	s.Want("ADDED a", "ADDED b", "ADDED c", "ADDED a")
	s.WantEnd()
	invalid := map[string][]wsframe.Frame{
		"RSV1 on the second frame": {
			{First: wsframe.OpText, Payload: []byte(`{"type"`)},
			{First: wsframe.Final | wsframe.RSV1 | wsframe.OpContinuation, Payload: a},
		},
		"RSV1 on a ping":      {{First: wsframe.Final | wsframe.RSV1 | wsframe.OpPing, Payload: []byte("?")}},
		"RSV2":                {{First: wsframe.Final | wsframe.RSV1 | wsframe.RSV2 | wsframe.OpText, Payload: a}},
		"RSV1 on plain text":  {{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: []byte(text("c"))}},
		"a truncated message": {{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: a[:len(a)/2]}},
	}
	if e.IsVariant("ws-gorilla") {
		delete(invalid, "RSV1 on a ping") // the gorilla library ignores the bit
	}
	for name, frames := range invalid {
		s := serveDeflate(e, harness.DeflateNoContext, harness.SendFrames(frames...),
			harness.AnswerClose).DialRequest("", anyCoding)
		if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s: got %s %s, %v; want an error with code Corrupt", name, w.Type, w.Object, err)
		}
		s.Close()
	}
}

func wsNoContext(e *harness.Env) {
	for _, offer := range []string{
		harness.DeflateNoContext, harness.Deflate + "; server_no_context_takeover",
		harness.DeflateNoContext + "; client_max_window_bits=15",
	} {
		o := offerDeflate(e, e.Put("start"), offer)
		if got := o.Headers.Get(harness.WebSocketExtensions); o.accepted &&
			!strings.Contains(got, "server_no_context_takeover") {
			e.Errorf("offered %q: the server selected %q, want it to include server_no_context_takeover", offer, got)
		}
		o.wantEvents()
	}
	if !e.Supports(harness.InProcess) {
		return
	}
	offers := make(chan string, 1)
	var frames []wsframe.Frame
	for _, message := range deflate(harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("ADDED", "a", "5")) {
		frames = append(frames, wsframe.Frame{First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: message})
	}
	script := e.ScriptedWithHeader(
		harness.ResponseHeader{
			ContentType: harness.JSONMediaType, Extra: []string{harness.WebSocketExtensions, harness.Deflate},
		},
		harness.SendFrames(frames...), harness.AnswerClose)
	env := e.WithRoute(e.ServeOnAnyTarget(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		offers <- r.Header.Get(harness.WebSocketExtensions)
		script(w, r)
	})))
	s, err := env.TryDial("", anyCoding)
	offer := <-offers
	if !strings.Contains(offer, "client_no_context_takeover") {
		e.Errorf("the client offers %q, want client_no_context_takeover", offer)
	}
	switch excluded := strings.Contains(offer, "server_no_context_takeover"); {
	// The nhooyr library supports context takeover, so its client may accept the server.
	case excluded && err == nil && !e.IsVariant("ws-nhooyr"):
		e.Errorf("the client accepts a server that did not agree to server_no_context_takeover, want an error")
	case !excluded && err != nil:
		e.Errorf("the client refuses context takeover, which its offer %q permits: %v", offer, err)
	case !excluded:
		s.Want("ADDED a", "ADDED a")
	}
	if err == nil {
		s.Close()
	}
	s = serveDeflate(e, harness.DeflateNoContext, harness.SendFrames(frames...), harness.AnswerClose).DialRequest("",
		anyCoding)
	s.Want("ADDED a")
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("a message that refers to an earlier one: got %s %s, %v; want an error with code Corrupt", w.Type,
			w.Object, err)
	}
}

func wsDeclined(e *harness.Env) {
	for _, params := range []string{
		"unknown", "server_no_context_takeover; server_no_context_takeover", "server_no_context_takeover=1",
		"client_max_window_bits=16",
		"client_max_window_bits=7", "client_max_window_bits=08", "server_max_window_bits", "server_max_window_bits=0",
	} {
		o := offerDeflate(e, e.Put("start"), harness.Deflate+"; "+params)
		if o.accepted {
			e.Errorf("%q: the server answered %q, want it to decline", o.offer,
				o.Headers.Get(harness.WebSocketExtensions))
		}
		o.wantEvents()
	}
	if !e.Supports(harness.InProcess) {
		return
	}
	s := e.WithRoute(e.ServeOnAnyTarget(e.Scripted(harness.JSONMediaType, harness.SendPieces(harness.EventJSON("ADDED",
		"a", "5"), harness.EventJSON("ADDED", "b", "6")), harness.EndCleanly))).DialRequest("", anyCoding)
	s.Want("ADDED a", "ADDED b")
	s.WantEnd()
	s = e.WithRoute(e.ServeOnAnyTarget(e.Scripted(harness.JSONMediaType, harness.SendFrames(wsframe.Frame{
		First: wsframe.Final | wsframe.RSV1 | wsframe.OpText, Payload: deflate(harness.EventJSON("ADDED", "a", "5"))[0],
	}), harness.AnswerClose))).
		DialRequest("", anyCoding)
	if w, err := s.Receive(); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("RSV1 without an accepted offer: got %s %s, %v; want an error with code Corrupt", w.Type, w.Object,
			err)
	}
	for _, answer := range []string{
		harness.DeflateNoContext + "; unknown", harness.DeflateNoContext + ", " + harness.DeflateNoContext, "foo",
		harness.DeflateNoContext + "; server_max_window_bits=99",
	} {
		// The server cuts the connection, because nhooyr would otherwise wait seconds for the end
		// of a handshake response that it refuses.
		if s, err := serveDeflate(e, answer, harness.CutConnection).TryDial("", anyCoding); err == nil {
			// gorilla checks only for permessage-deflate without context takeover, and nhooyr
			// ignores the window size.
			if !e.IsVariant("ws-gorilla") && !(e.IsVariant("ws-nhooyr") && strings.HasSuffix(answer, "=99")) {
				e.Errorf("the client accepts the answer %q, want an error", answer)
			}
			s.Close()
		}
	}
}
