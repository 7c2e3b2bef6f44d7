package mutants

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/transport"
)

// sampleText has characters of one to four bytes, including the boundaries of each length,
// the neighbors of the surrogates, a byte order mark and noncharacters.
const sampleText = "aé€𝄞\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff\ufeff\ufffd\ufffe"

// eventJSON is the event that the scripted server sends. Its length is the size limit of the
// client.
var eventJSON = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"` + sampleText + `"}}`

// A clientReaction records the pongs and the close frame of a client.
type clientReaction struct {
	pongs []string
	code  int // code in the close frame; -1 if the client sent no close frame
	err   error
}

// onClient runs t against the client. If the stream must continue after the frames of t, the
// scripted server then sends an event and closes the stream.
func (t *trial) onClient(e *harness.Env) {
	left := make(chan clientReaction, 1)
	s := e.StartScript(harness.JSONMediaType, func(p *harness.ScriptedServer) {
		for _, b := range t.writes(false) {
			p.SendRaw(string(b))
		}
		if len(t.codes) == 0 {
			p.SendFrame(text(eventJSON))
			p.SendFrame(normalClose)
		}
		left <- readReaction(p)
	}).DialRequest("", transport.Request{Limit: len(eventJSON)})
	want := t.events
	if len(t.codes) == 0 {
		want++
	}
	for i := range want {
		w, err := s.Receive()
		if err != nil {
			e.Fatalf("event %d: %v", i, err)
		}
		if got := string(w.Object); w.Type != "ADDED" || !strings.HasSuffix(got, sampleText+`"}`) {
			e.Errorf("event %d: got %s %s", i, w.Type, got)
		}
	}
	t.checkEnd(e, s)
	t.checkReaction(e, <-left)
}

func (t *trial) checkEnd(e *harness.Env, s *harness.Watch) {
	e.Helper()
	w, err := s.Receive()
	switch clean := len(t.codes) == 0 || t.clean; {
	case err == nil:
		e.Errorf("got %s %s, want the end", w.Type, w.Object)
	case clean && err != io.EOF:
		e.Errorf("got %v, want a clean end", err)
	case !clean && (err == io.EOF || listwatch.AsError(err) == nil || errors.Is(err, listwatch.Unknown)):
		e.Errorf("got %v, want an error with a code", err)
	}
}

func (t *trial) checkReaction(e *harness.Env, g clientReaction) {
	e.Helper()
	codes := t.codes
	if len(codes) == 0 {
		codes = normalCode
	}
	if !slices.Contains(codes, g.code) {
		e.Errorf("got close code %d from the client, error %v; want one of %d", g.code, g.err, codes)
	}
	done := 0
	for _, text := range g.pongs {
		right := false
		if done, right = t.matchPong(text, done); !right {
			e.Fatalf("got pongs %q, want a subsequence of %q", g.pongs, t.pongs)
		}
	}
	if done < len(t.pongs) {
		e.Errorf("got pongs %q, want them to end with the last of %q", g.pongs, t.pongs)
	}
}

// readReaction reads the frames of the client up to its close frame.
func readReaction(p *harness.ScriptedServer) clientReaction {
	g := clientReaction{code: -1}
	for g.code < 0 {
		f, err := wsframe.Read(p.In)
		switch {
		case err != nil:
			g.err = err
			return g
		case !f.Masked:
			g.err = errors.New("the client sent a frame without a mask")
			return g
		case f.Opcode() == wsframe.OpClose:
			g.code = closeCode(f)
		case f.Opcode() == wsframe.OpPong:
			g.pongs = append(g.pongs, string(f.Payload))
		}
	}
	return g
}

// clientTrials returns the trials in which a scripted server sends the frames.
func clientTrials() []*trial {
	event := text(eventJSON)
	long := strings.Repeat("x", 125)
	half := part(wsframe.OpText, eventJSON[:10])
	all := []*trial{
		{name: "ping-empty", sent: []frame{ping("")}, pongs: []string{""}},
		{name: "ping-of-125", sent: []frame{ping(long)}, pongs: []string{long}},
		{
			name: "pings", sent: []frame{ping("one"), event, ping("two"), ping("three")},
			pongs: []string{"one", "two", "three"}, events: 1,
		},
		{name: "pong-unasked", sent: []frame{pong(""), pong(long)}},
		{name: "event-in-drips", sent: []frame{ping("x"), event}, byteByByte: true, pongs: []string{"x"}, events: 1},
		{
			name: "fragments-in-drips", sent: fragments(eventJSON, 3, ping("x")), byteByByte: true,
			pongs: repeated("x", len(eventJSON)/3), events: 1,
		},
		{name: "fragments-of-one-byte", sent: fragments(eventJSON, 1), events: 1},
		{
			name: "fragments-with-pings-between", sent: fragments(eventJSON, 7, ping("x"), pong("y")),
			pongs: repeated("x", len(eventJSON)/7), events: 1,
		},
		{
			name: "fragments-with-nothing-between",
			sent: fragments(eventJSON, 7, part(wsframe.OpContinuation, "")), events: 1,
		},
		{name: "event-within-an-event", sent: []frame{half, event}, codes: protocolError},
		{
			name: "binary-within-an-event",
			sent: []frame{half, wsframe.Unfragmented(wsframe.OpBinary, "x")}, codes: protocolError,
		},
		{
			name: "close-within-an-event", sent: []frame{half, normalClose},
			codes: []int{wsframe.CloseNormal, wsframe.CloseProtocolError},
		},
		{name: "close-with-letters", sent: []frame{closing("\x03\xe8é€𝄞")}, codes: normalCode, clean: true},
		{name: "close-with-123-bytes", sent: []frame{closing("\x03\xe8" + long[:123])}, codes: normalCode, clean: true},
		{name: "close-empty", sent: []frame{closing("")}, codes: []int{0, wsframe.CloseNormal}},
		{name: "close-and-event", sent: []frame{event, normalClose, event}, events: 1, codes: normalCode, clean: true},
		{
			name: "close-twice", sent: []frame{normalClose, wsframe.Close(wsframe.CloseProtocolError)},
			codes: normalCode, clean: true,
		},
		{name: "too-large", sent: []frame{text(eventJSON + " ")}, codes: []int{wsframe.CloseTooBig}},
		{name: "too-large-in-fragments", sent: fragments(eventJSON+" ", 40), codes: []int{wsframe.CloseTooBig}},
		{
			name: "too-large-after-others", sent: []frame{event, event, text(eventJSON + " ")}, events: 2,
			codes: []int{wsframe.CloseTooBig},
		},
		{
			name:  "too-large-in-name-alone",
			raw:   []byte{wsframe.Final | wsframe.OpText, 127, 0x40, 0, 0, 0, 0, 0, 0, 0},
			codes: []int{wsframe.CloseTooBig},
		},
	}
	for _, code := range validCodes {
		all = append(all, &trial{
			name: closeName(code), sent: []frame{wsframe.Close(code)},
			codes: []int{int(code), wsframe.CloseNormal}, clean: code <= 1001,
		})
	}
	for i := 1; i < len(eventJSON); i++ {
		if first := strings.Index(eventJSON, sampleText); i < first-1 || i > first+len(sampleText) {
			continue // outside sampleText
		}
		all = append(all, &trial{
			name: "split-at-" + strconv.Itoa(i), events: 1, pongs: []string{"x"},
			sent: []frame{part(wsframe.OpText, eventJSON[:i]), ping("x"), last(eventJSON[i:])},
		})
	}
	all = append(all, invalidUTF8Trials()...)
	return append(all, violationTrials()...)
}

// fragments returns a message in fragments of size bytes, with other frames between them.
func fragments(text string, size int, between ...frame) (all []frame) {
	op := byte(wsframe.OpText)
	for len(text) > size {
		all = append(append(all, frame{First: op, Payload: []byte(text[:size])}), between...)
		text, op = text[size:], wsframe.OpContinuation
	}
	return append(all, frame{First: wsframe.Final | op, Payload: []byte(text)})
}

func repeated(text string, n int) []string { return slices.Repeat([]string{text}, n) }

// notUTF8 contains invalid UTF-8 sequences (RFC 3629, sections 3 and 4) by the kind of error.
var notUTF8 = map[string]string{
	"continuation":         "\x80",
	"continuations":        "\x80\xbf",
	"half-of-two":          "\xc3",
	"half-of-three":        "\xe2\x82",
	"half-of-four":         "\xf0\x9d\x84",
	"half-and-a-letter":    "\xe2\x82a",
	"two-halves":           "\xc3\xc3\xa9",
	"overlong-two":         "\xc0\xaf",
	"overlong-two-most":    "\xc1\xbf",
	"overlong-three":       "\xe0\x80\xaf",
	"overlong-three-most":  "\xe0\x9f\xbf",
	"overlong-four":        "\xf0\x80\x80\xaf",
	"overlong-four-most":   "\xf0\x8f\xbf\xbf",
	"first-surrogate":      "\xed\xa0\x80",
	"last-surrogate":       "\xed\xbf\xbf",
	"pair-of-surrogates":   "\xed\xa0\xb4\xed\xb4\x9e",
	"beyond-the-last":      "\xf4\x90\x80\x80",
	"five-bytes":           "\xf8\x88\x80\x80\x80",
	"six-bytes":            "\xfc\x84\x80\x80\x80\x80",
	"never-in-utf8":        "\xfe\xff",
	"latin-1":              "\xe9t\xe9",
	"word-of-the-autobahn": "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
}

// invalidUTF8Trials returns trials with events that contain invalid UTF-8: once in one
// frame, and once with a frame for each invalid byte.
func invalidUTF8Trials() (all []*trial) {
	before, behind, _ := strings.Cut(eventJSON, sampleText)
	for name, bad := range notUTF8 {
		apart := append([]frame{part(wsframe.OpText, before)}, fragments(bad, 1)...)
		for i := range apart[1:] {
			apart[i+1].First = wsframe.OpContinuation
		}
		apart = append(apart, last(behind))
		all = append(all,
			&trial{
				name: "not-utf8-" + name, sent: []frame{text(before + bad + behind)},
				codes: []int{wsframe.CloseInvalidData},
			},
			&trial{name: "not-utf8-" + name + "-in-fragments", sent: apart, codes: []int{wsframe.CloseInvalidData}},
		)
	}
	return all
}
