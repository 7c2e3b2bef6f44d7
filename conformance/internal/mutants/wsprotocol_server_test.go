package mutants

import (
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

// onServer runs t against the server. If the stream must continue after the frames of t, onServer
// then writes an object and expects the event.
func (t *trial) onServer(e *harness.Env) {
	a := e.WatchRaw(harness.From(e.Put("a")))
	a.WantAccepted()
	for _, p := range t.writes(true) {
		_, _ = a.Conn.Write(p) // the server may have closed the connection
	}
	if len(t.codes) == 0 {
		// If t expects no pong, send a ping. Its pong shows that the server has read all frames and
		// continues.
		if len(t.pongs) == 0 {
			probe := ping("and now?")
			probe.Masked = true
			_, _ = a.Conn.Write(probe.Bytes())
			withPing := *t
			withPing.pongs = []string{"and now?"}
			t = &withPing
		}
		e.Put("a")
	}
	done, events := 0, 0
	for len(t.codes) > 0 || done < len(t.pongs) || events == 0 {
		f, err := wsframe.Read(a.Body)
		if err != nil {
			e.Fatalf("after %d of the expected pongs %q and %d events: %v", done, t.pongs, events, err)
		}
		switch f.Opcode() {
		case wsframe.OpClose:
			if code := closeCode(f); !slices.Contains(t.codes, code) {
				e.Fatalf("got close code %d in %q, want one of %v", code, f.Payload, t.codes)
			}
			wantClosed(a)
			return
		case wsframe.OpPong:
			right := false
			if done, right = t.matchPong(string(f.Payload), done); !right {
				e.Fatalf("got pong %q, want a subsequence of %q", f.Payload, t.pongs)
			}
		case wsframe.OpText:
			events++
		default:
			e.Fatalf("got an unexpected frame: first byte %#02x, payload %q", f.First, f.Payload)
		}
	}
}

// wantClosed checks that the server closes the connection after its close frame and sends
// nothing in between (RFC 6455, section 7.1.1).
func wantClosed(a *harness.Response) {
	a.Helper()
	if n, err := io.Copy(io.Discard, a.Body); n > 0 || harness.IsTimeout(err) {
		a.Errorf("after the close frame: got %d bytes, error %v; want the connection closed", n, err)
	}
}

func closeCode(f frame) int {
	if len(f.Payload) < 2 {
		return 0
	}
	return int(binary.BigEndian.Uint16(f.Payload))
}

// violationTrials returns the trials that violate the protocol whichever end sends the frames.
func violationTrials() []*trial {
	whole, half := text("x"), part(wsframe.OpText, "x")
	all := []*trial{
		{
			name: "masked-wrongly", sent: []frame{{First: wsframe.Final | wsframe.OpPing, Masked: true}},
			codes: protocolError,
		},
		{name: "ping-of-126", sent: []frame{ping(strings.Repeat("x", 126))}, codes: protocolError},
		{name: "ping-of-64KiB", sent: []frame{ping(strings.Repeat("x", 64<<10))}, codes: protocolError},
		{name: "ping-in-fragments", sent: []frame{part(wsframe.OpPing, "x"), last("")}, codes: protocolError},
		{name: "pong-in-fragments", sent: []frame{part(wsframe.OpPong, ""), last("")}, codes: protocolError},
		{name: "close-in-fragments", sent: []frame{part(wsframe.OpClose, ""), last("")}, codes: protocolError},
		{name: "close-of-126", sent: []frame{closing("\x03\xe8" + strings.Repeat("x", 124))}, codes: protocolError},
		{name: "close-of-one-byte", sent: []frame{closing("\x03")}, codes: protocolError},
		{name: "continuation-of-nothing", sent: []frame{last("x"), whole}, codes: protocolError},
		{
			name: "unfinished-continuation-of-nothing",
			sent: []frame{part(wsframe.OpContinuation, ""), whole}, codes: protocolError,
		},
		{
			name: "length-of-2-63", raw: []byte{wsframe.Final | wsframe.OpText, 127, 0x80, 0, 0, 0, 0, 0, 0, 0},
			codes: protocolError,
		},
	}
	for name, bits := range map[string]byte{
		"rsv1": wsframe.RSV1, "rsv2": wsframe.RSV2, "rsv3": wsframe.RSV3,
		"rsv-all": wsframe.RSV1 | wsframe.RSV2 | wsframe.RSV3,
	} {
		for kind, f := range map[string]frame{
			"text": whole, "fragment": half, "ping": ping("x"), "pong": pong(""), "close": normalClose,
		} {
			f.First |= bits
			all = append(all, &trial{name: name + "-on-" + kind, sent: []frame{f}, codes: protocolError})
		}
	}
	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		all = append(all, &trial{
			name: "opcode-" + strconv.Itoa(int(op)), sent: []frame{wsframe.Unfragmented(op, "")}, codes: protocolError,
		})
		all = append(all, &trial{
			name: "opcode-" + strconv.Itoa(int(op)) + "-with-text",
			sent: []frame{wsframe.Unfragmented(op, "x")}, codes: protocolError,
		})
	}
	for _, code := range []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		all = append(all, &trial{name: closeName(code), sent: []frame{wsframe.Close(code)}, codes: protocolError})
	}
	for name, reason := range map[string]string{
		"overlong": "\xc0\xaf", "surrogate": "\xed\xa0\x80", "half-a-letter": "a\xe2\x82",
	} {
		all = append(all, &trial{
			name: "close-with-" + name, sent: []frame{closing("\x03\xe8" + reason)},
			codes: []int{wsframe.CloseInvalidData, wsframe.CloseProtocolError},
		})
	}
	return all
}

func closeName(code uint16) string { return "close-" + strconv.Itoa(int(code)) }

// validCodes are codes that a close frame may contain (RFC 6455, section 7.4, and the IANA
// registry).
var validCodes = []uint16{
	1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
}

// serverTrials returns the trials in which a scripted client sends the frames.
func serverTrials() []*trial {
	long := strings.Repeat("x", 125)
	pings := []frame{ping("one"), pong("unsolicited"), ping("two"), ping(""), ping("four")}
	policy := []int{wsframe.ClosePolicyViolation}
	all := []*trial{
		{name: "ping-empty", sent: []frame{ping("")}, pongs: []string{""}},
		{name: "ping-of-125", sent: []frame{ping(long)}, pongs: []string{long}},
		{name: "ping-of-bytes", sent: []frame{ping("\x00\xff\xfe\xfd")}, pongs: []string{"\x00\xff\xfe\xfd"}},
		{name: "pong-unasked", sent: []frame{pong(""), pong(long)}},
		{name: "pings", sent: pings, pongs: []string{"one", "two", "", "four"}},
		{name: "pings-in-drips", sent: pings, byteByByte: true, pongs: []string{"one", "two", "", "four"}},
		{name: "text", sent: []frame{text("x")}},
		{name: "text-empty", sent: []frame{text("")}},
		{name: "binary", sent: []frame{wsframe.Unfragmented(wsframe.OpBinary, "x")}},
		{name: "text-in-fragments", sent: []frame{part(wsframe.OpText, "x"), ping(""), last("")}, pongs: []string{""}},
		{name: "text-that-is-not-utf8", sent: []frame{text("\xff")}},
		{name: "text-of-64KiB", sent: []frame{text(strings.Repeat("x", 64<<10))}, codes: policy},
		{name: "text-of-1MiB", sent: []frame{text(strings.Repeat("x", 1<<20))}, codes: []int{wsframe.CloseTooBig}},
		{name: "close-empty", sent: []frame{closing("")}, codes: []int{0, wsframe.CloseNormal}},
		{name: "close-with-123-bytes", sent: []frame{closing("\x03\xe8" + long[:123])}, codes: normalCode},
		{name: "close-with-letters", sent: []frame{closing("\x03\xe8é€𝄞")}, codes: normalCode},
		{name: "close-in-drips", sent: []frame{normalClose}, byteByByte: true, codes: normalCode},
		{name: "close-twice", sent: []frame{normalClose, wsframe.Close(1001)}, codes: normalCode},
		{name: "close-and-ping", sent: []frame{normalClose, ping("x")}, codes: normalCode},
		{name: "close-and-text", sent: []frame{normalClose, text("x")}, codes: normalCode},
		{name: "ping-and-close", sent: []frame{ping("x"), normalClose}, pongs: []string{"x"}, codes: normalCode},
	}
	for _, code := range validCodes {
		all = append(all, &trial{
			name: closeName(code), sent: []frame{wsframe.Close(code)}, codes: []int{int(code), wsframe.CloseNormal},
		})
	}
	return append(all, violationTrials()...)
}
