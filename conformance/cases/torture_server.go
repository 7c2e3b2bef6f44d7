package cases

import (
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"
)

// onServer has a client by hand send it all, and then an event be written.
func (t *trial) onServer(e *env) {
	a := e.watch(from(e.put("a")))
	a.accepted()
	for _, p := range t.writes(true) {
		_, _ = a.conn.Write(p) // it may be closed by now
	}
	if len(t.codes) == 0 {
		if len(t.pongs) == 0 { // its pong says that the server has read what came before, and goes on
			ping := whole(opPing, "and now?")
			ping.masked = true
			_, _ = a.conn.Write(ping.bytes())
			asked := *t
			asked.pongs = []string{"and now?"}
			t = &asked
		}
		e.put("a")
	}
	done, events := 0, 0
	for len(t.codes) > 0 || done < len(t.pongs) || events == 0 {
		f, err := readFrame(a.body)
		if err != nil {
			e.Fatalf("after %d of the pongs %q and %d events: %v", done, t.pongs, events, err)
		}
		switch f.op() {
		case opClose:
			if code := codeOf(f); !slices.Contains(t.codes, code) {
				e.Fatalf("got close %d %q, want one of %v", code, f.payload, t.codes)
			}
			a.wantClosed()
			return
		case opPong:
			right := false
			if done, right = t.rightPong(string(f.payload), done); !right {
				e.Fatalf("got a pong %q, want one of %q in order", f.payload, t.pongs)
			}
		case opText:
			events++
		default:
			e.Fatalf("got a frame %#02x %q", f.first, f.payload)
		}
	}
}

// wantClosed says that nothing comes behind a close frame, and that the server closes the connection (RFC 6455, section 7.1.1).
func (a *answer) wantClosed() {
	a.Helper()
	if n, err := io.Copy(io.Discard, a.body); n > 0 || isTimeout(err) {
		a.Errorf("behind the close frame: got %d bytes, %v; want the connection closed", n, err)
	}
}

func codeOf(f wsFrame) int {
	if len(f.payload) < 2 {
		return 0
	}
	return int(binary.BigEndian.Uint16(f.payload))
}

// wrongTrials are what is wrong whichever end sends it.
func wrongTrials() []*trial {
	protocol := []int{closedProtocol}
	text, half := whole(opText, "x"), wsFrame{first: opText, payload: []byte("x")}
	all := []*trial{
		{name: "masked-wrongly", sent: []wsFrame{{first: bitFinal | opPing, masked: true}}, codes: protocol},
		{name: "ping-of-126", sent: []wsFrame{whole(opPing, strings.Repeat("x", 126))}, codes: protocol},
		{name: "ping-of-64KiB", sent: []wsFrame{whole(opPing, strings.Repeat("x", 64<<10))}, codes: protocol},
		{name: "ping-in-fragments", sent: []wsFrame{{first: opPing, payload: []byte("x")}, {first: bitFinal | opContinuation}}, codes: protocol},
		{name: "pong-in-fragments", sent: []wsFrame{{first: opPong}, {first: bitFinal | opContinuation}}, codes: protocol},
		{name: "close-in-fragments", sent: []wsFrame{{first: opClose}, {first: bitFinal | opContinuation}}, codes: protocol},
		{name: "close-of-126", sent: []wsFrame{whole(opClose, "\x03\xe8"+strings.Repeat("x", 124))}, codes: protocol},
		{name: "close-of-one-byte", sent: []wsFrame{whole(opClose, "\x03")}, codes: protocol},
		{name: "continuation-of-nothing", sent: []wsFrame{{first: bitFinal | opContinuation, payload: []byte("x")}, text}, codes: protocol},
		{name: "unfinished-continuation-of-nothing", sent: []wsFrame{{first: opContinuation}, text}, codes: protocol},
		{name: "length-of-2-63", raw: []byte{bitFinal | opText, 127, 0x80, 0, 0, 0, 0, 0, 0, 0}, codes: protocol},
	}
	for name, bits := range map[string]byte{"rsv1": bitRSV1, "rsv2": bitRSV2, "rsv3": bitRSV3, "rsv-all": bitRSV1 | bitRSV2 | bitRSV3} {
		for kind, f := range map[string]wsFrame{"text": text, "fragment": half, "ping": whole(opPing, "x"), "pong": whole(opPong, ""), "close": closing(closedNormally)} {
			f.first |= bits
			all = append(all, &trial{name: name + "-on-" + kind, sent: []wsFrame{f}, codes: protocol})
		}
	}
	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		all = append(all, &trial{name: "opcode-" + strconv.Itoa(int(op)), sent: []wsFrame{whole(op, "")}, codes: protocol})
		all = append(all, &trial{name: "opcode-" + strconv.Itoa(int(op)) + "-with-text", sent: []wsFrame{whole(op, "x")}, codes: protocol})
	}
	for _, code := range []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		all = append(all, &trial{name: closeName(code), sent: []wsFrame{closing(code)}, codes: protocol})
	}
	for name, reason := range map[string]string{"overlong": "\xc0\xaf", "surrogate": "\xed\xa0\x80", "half-a-letter": "a\xe2\x82"} {
		all = append(all, &trial{
			name: "close-with-" + name, sent: []wsFrame{whole(opClose, "\x03\xe8"+reason)}, codes: []int{closedBadText, closedProtocol},
		})
	}
	return all
}

func closeName(code uint16) string { return "close-" + strconv.Itoa(int(code)) }

// validCodes are those that may be in a close frame: RFC 6455, section 7.4, and IANA's registry.
var validCodes = []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999}

// serverTrials are what a client sends.
func serverTrials() []*trial {
	long := strings.Repeat("x", 125)
	pings := []wsFrame{whole(opPing, "one"), whole(opPong, "nobody asked"), whole(opPing, "two"), whole(opPing, ""), whole(opPing, "four")}
	policy := []int{closedPolicy}
	all := []*trial{
		{name: "ping-empty", sent: []wsFrame{whole(opPing, "")}, pongs: []string{""}},
		{name: "ping-of-125", sent: []wsFrame{whole(opPing, long)}, pongs: []string{long}},
		{name: "ping-of-bytes", sent: []wsFrame{whole(opPing, "\x00\xff\xfe\xfd")}, pongs: []string{"\x00\xff\xfe\xfd"}},
		{name: "pong-unasked", sent: []wsFrame{whole(opPong, ""), whole(opPong, long)}},
		{name: "pings", sent: pings, pongs: []string{"one", "two", "", "four"}},
		{name: "pings-in-drips", sent: pings, drips: true, pongs: []string{"one", "two", "", "four"}},
		{name: "text", sent: []wsFrame{whole(opText, "x")}, codes: policy},
		{name: "text-empty", sent: []wsFrame{whole(opText, "")}, codes: policy},
		{name: "binary", sent: []wsFrame{whole(opBinary, "x")}, codes: policy},
		{name: "text-in-fragments", sent: []wsFrame{{first: opText, payload: []byte("x")}, whole(opPing, ""), {first: bitFinal | opContinuation}}, codes: policy},
		{name: "text-that-is-not-utf8", sent: []wsFrame{whole(opText, "\xff")}, codes: []int{closedPolicy, closedBadText}},
		{name: "text-of-64KiB", sent: []wsFrame{whole(opText, strings.Repeat("x", 64<<10))}, codes: []int{closedPolicy, closedTooBig}},
		{name: "text-of-16MiB", sent: []wsFrame{whole(opText, strings.Repeat("x", 16<<20))}, codes: []int{closedTooBig}},
		{name: "close-empty", sent: []wsFrame{whole(opClose, "")}, codes: []int{0, closedNormally}},
		{name: "close-with-123-bytes", sent: []wsFrame{whole(opClose, "\x03\xe8"+long[:123])}, codes: []int{closedNormally}},
		{name: "close-with-letters", sent: []wsFrame{whole(opClose, "\x03\xe8é€𝄞")}, codes: []int{closedNormally}},
		{name: "close-in-drips", sent: []wsFrame{closing(closedNormally)}, drips: true, codes: []int{closedNormally}},
		{name: "close-twice", sent: []wsFrame{closing(closedNormally), closing(1001)}, codes: []int{closedNormally}},
		{name: "close-and-ping", sent: []wsFrame{closing(closedNormally), whole(opPing, "x")}, codes: []int{closedNormally}},
		{name: "close-and-text", sent: []wsFrame{closing(closedNormally), whole(opText, "x")}, codes: []int{closedNormally}},
		{name: "ping-and-close", sent: []wsFrame{whole(opPing, "x"), closing(closedNormally)}, pongs: []string{"x"}, codes: []int{closedNormally}},
	}
	for _, code := range validCodes {
		all = append(all, &trial{name: closeName(code), sent: []wsFrame{closing(code)}, codes: []int{int(code), closedNormally}})
	}
	return append(all, wrongTrials()...)
}
