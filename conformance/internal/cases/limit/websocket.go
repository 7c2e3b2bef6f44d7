package limit

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

func wsClientTalks(e *harness.Env) {
	for name, frames := range map[string][]wsframe.Frame{
		"text":             {wsframe.Unfragmented(wsframe.OpText, "hello")},
		"binary":           {wsframe.Unfragmented(wsframe.OpBinary, "\x00\x01")},
		"an empty message": {wsframe.Unfragmented(wsframe.OpText, "")},
		"fragments": {
			{First: wsframe.OpText, Payload: []byte("he")},
			{First: wsframe.Final | wsframe.OpContinuation, Payload: []byte("llo")},
		},
	} {
		a := e.WatchRaw(harness.From(e.Put("a")))
		a.WantAccepted()
		// The pong shows that the server has read the messages.
		sendMasked(a, append(frames, wsframe.Unfragmented(wsframe.OpPing, ""))...)
		if f, err := wsframe.Read(a.Body); err != nil || f.Opcode() != wsframe.OpPong {
			e.Errorf("%s: got a frame that starts with %#02x and has the payload %q, %v; want a pong",
				name, f.First, f.Payload, err)
		}
		e.Put("a")
		if f, err := wsframe.Read(a.Body); err != nil || f.Opcode() != wsframe.OpText {
			e.Errorf("%s: got a frame that starts with %#02x and has the payload %q, %v; want the next event",
				name, f.First, f.Payload, err)
		}
		a.Conn.Close()
	}
}

// wsFloods are the floods of wsClientFloods. Each consists of start and many copies of piece,
// because building a whole flood of 16 MiB would take longer than the server needs to refuse it.
var wsFloods = []struct {
	name         string
	start, piece []byte
	times        int
	code         int
}{
	{
		"a message of 16 MiB", wsframe.MaskedHeader(wsframe.Final|wsframe.OpBinary, 16<<20),
		wsframe.Mask(bytes.Repeat([]byte("x"), 64<<10)), 16 << 20 / (64 << 10), wsframe.CloseTooBig,
	},
	{
		"100,000 small messages", nil,
		bytes.Repeat(wsframe.Frame{
			First: wsframe.Final | wsframe.OpText, Masked: true, Payload: []byte("ping"),
		}.Bytes(), 1000), 100, wsframe.ClosePolicyViolation,
	},
}

func wsClientFloods(e *harness.Env) {
	for _, f := range wsFloods {
		a := e.WatchRaw(harness.From(e.Newest()))
		a.WantAccepted()
		go func() { // ends when the connection is closed
			_, err := a.Conn.Write(f.start)
			for i := 0; i < f.times && err == nil; i++ {
				_, err = a.Conn.Write(f.piece)
			}
		}()
		code, err := wsframe.ReadCloseCode(a.Body)
		if code == 0 && e.IsVariant("ws-nhooyr") {
			// The nhooyr library closes the connection without reading the rest, so the kernel may
			// reset the connection before the client has read the close frame.
			code = f.code
		}
		if code != f.code {
			e.Errorf("%s: got close code %d, %v; want %d", f.name, code, err, f.code)
		}
		a.Conn.Close()
	}
	checkAlive(e)
}

// sendMasked masks and sends frames, as a client does.
func sendMasked(a *harness.Response, frames ...wsframe.Frame) {
	for _, f := range frames {
		f.Masked = true
		_, _ = a.Conn.Write(f.Bytes()) // the server may have closed the connection
	}
}

const pings = 10_000

// pingFlood returns the bytes of all ping frames that wsPingFlood sends. The payload of each frame
// is its number, from 0.
var pingFlood = sync.OnceValue(func() (all []byte) {
	for i := range uint32(pings) {
		f := wsframe.Frame{
			First: wsframe.Final | wsframe.OpPing, Masked: true, Payload: binary.BigEndian.AppendUint32(nil, i),
		}
		all = append(all, f.Bytes()...)
	}
	return all
})

func wsPingFlood(e *harness.Env) {
	a := e.WatchRaw(harness.From(e.Put("a")))
	a.WantAccepted()
	go func() { _, _ = a.Conn.Write(pingFlood()) }() // ends when the connection is closed
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
			e.Fatalf("got a frame that starts with %#02x and has the payload %q after the pong to ping %d, want a "+
				"pong to a later ping", f.First, f.Payload, int(next)-1)
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
