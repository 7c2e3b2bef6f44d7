package cases

import (
	"encoding/binary"
	"strings"
)

// What is too big for a server of watches, and what closes tell it: RFC 6455, section 7.4.1.
const (
	closedPolicy = 1008
	closedTooBig = 1009
)

func wsClientTalks(e *env) {
	start := e.put("a")
	for what, said := range map[string][]wsFrame{
		"text":             {whole(opText, "hello")},
		"binary":           {whole(opBinary, "\x00\x01")},
		"nothing":          {whole(opText, "")},
		"a list of frames": {{first: opText, payload: []byte("he")}, {first: bitFinal | opContinuation, payload: []byte("llo")}},
	} {
		a := e.watch(from(start))
		a.accepted()
		a.say(said...)
		e.put("a")
		if f, err := readFrame(a.body); err != nil || f.op() != opText && !isClose(f, closedPolicy) {
			e.Errorf("%s: got %#02x %q, %v; want the next event, or a close with 1008", what, f.first, f.payload, err)
		}
		a.conn.Close()
	}

	a := e.watch(from(e.newest()))
	a.accepted()
	go a.say(whole(opBinary, strings.Repeat("x", 16<<20))) // until the connection is closed
	if code, err := closeCode(a.body); code != closedTooBig {
		e.Errorf("a frame of 16 MiB: got close %d, %v; want 1009", code, err)
	}
	a.conn.Close()
	e.alive()
}

// say writes frames as a client does.
func (a *answer) say(frames ...wsFrame) {
	for _, f := range frames {
		f.masked = true
		_, _ = a.conn.Write(f.bytes()) // it may be closed by now
	}
}

func isClose(f wsFrame, code uint16) bool {
	return f.op() == opClose && len(f.payload) >= 2 && binary.BigEndian.Uint16(f.payload) == code
}

func wsPingFlood(e *env) {
	const pings = 10_000
	a := e.watch(from(e.put("a")))
	a.accepted()
	var all []byte
	for i := range uint32(pings) {
		f := wsFrame{first: bitFinal | opPing, masked: true, payload: binary.BigEndian.AppendUint32(nil, i)}
		all = append(all, f.bytes()...)
	}
	go func() { _, _ = a.conn.Write(all) }() // until the connection is closed
	e.put("a")
	next, pongs, events := uint32(0), 0, 0
	for next < pings || events == 0 {
		f, err := readFrame(a.body)
		switch {
		case err != nil:
			e.Fatalf("after %d pongs and %d events: %v", pongs, events, err)
		case f.op() == opText:
			events++
		case f.op() != opPong || len(f.payload) != 4 || binary.BigEndian.Uint32(f.payload) < next:
			e.Fatalf("got %#02x %q after a pong to ping %d, want a pong to a later one", f.first, f.payload, int(next)-1)
		default:
			pongs++
			next = binary.BigEndian.Uint32(f.payload) + 1
		}
	}
	e.Logf("%d pongs to %d pings", pongs, pings)
	e.put("a")
	if op, _ := a.message(); op != opText {
		e.Errorf("got opcode %d behind the pings, want the next event", op)
	}
}
