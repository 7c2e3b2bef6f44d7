package limit

import (
	"encoding/binary"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

func wsClientTalks(e *harness.Env) {
	start := e.Put("a")
	for name, frames := range map[string][]wsframe.Frame{
		"text":             {wsframe.Unfragmented(wsframe.OpText, "hello")},
		"binary":           {wsframe.Unfragmented(wsframe.OpBinary, "\x00\x01")},
		"an empty message": {wsframe.Unfragmented(wsframe.OpText, "")},
		"fragments":        {{First: wsframe.OpText, Payload: []byte("he")}, {First: wsframe.Final | wsframe.OpContinuation, Payload: []byte("llo")}},
	} {
		a := e.WatchRaw(harness.From(start))
		a.WantAccepted()
		sendMasked(a, frames...)
		e.Put("a")
		if f, err := wsframe.Read(a.Body); err != nil || f.Opcode() != wsframe.OpText && !isClose(f, wsframe.ClosePolicyViolation) {
			e.Errorf("%s: got a frame that starts with %#02x and has the payload %q, %v; want the next event, or close 1008", name, f.First, f.Payload, err)
		}
		a.Conn.Close()
	}

	a := e.WatchRaw(harness.From(e.Newest()))
	a.WantAccepted()
	// The goroutine ends when the connection is closed.
	go sendMasked(a, wsframe.Unfragmented(wsframe.OpBinary, strings.Repeat("x", 16<<20)))
	if code, err := wsframe.ReadCloseCode(a.Body); code != wsframe.CloseTooBig {
		e.Errorf("a frame of 16 MiB: got close code %d, %v; want 1009", code, err)
	}
	a.Conn.Close()
	checkAlive(e)
}

// sendMasked sends frames as a client does: masked.
func sendMasked(a *harness.Response, frames ...wsframe.Frame) {
	for _, f := range frames {
		f.Masked = true
		_, _ = a.Conn.Write(f.Bytes()) // the server may have closed the connection
	}
}

func isClose(f wsframe.Frame, code uint16) bool {
	return f.Opcode() == wsframe.OpClose && len(f.Payload) >= 2 && binary.BigEndian.Uint16(f.Payload) == code
}

func wsPingFlood(e *harness.Env) {
	const pings = 10_000
	a := e.WatchRaw(harness.From(e.Put("a")))
	a.WantAccepted()
	var all []byte
	for i := range uint32(pings) {
		f := wsframe.Frame{First: wsframe.Final | wsframe.OpPing, Masked: true, Payload: binary.BigEndian.AppendUint32(nil, i)}
		all = append(all, f.Bytes()...)
	}
	go func() { _, _ = a.Conn.Write(all) }() // ends when the connection is closed
	e.Put("a")
	next, pongs, events := uint32(0), 0, 0
	for next < pings || events == 0 {
		f, err := wsframe.Read(a.Body)
		switch {
		case err != nil:
			e.Fatalf("after %d pongs and %d events: %v", pongs, events, err)
		case f.Opcode() == wsframe.OpText:
			events++
		case f.Opcode() != wsframe.OpPong || len(f.Payload) != 4 || binary.BigEndian.Uint32(f.Payload) < next:
			e.Fatalf("got a frame that starts with %#02x and has the payload %q after the pong to ping %d, want a pong to a later ping", f.First, f.Payload, int(next)-1)
		default:
			pongs++
			next = binary.BigEndian.Uint32(f.Payload) + 1
		}
	}
	e.Logf("%d pongs to %d pings", pongs, pings)
	e.Put("a")
	if op, _ := a.ReadMessage(); op != wsframe.OpText {
		e.Errorf("got opcode %d after the pings, want the next event", op)
	}
}
