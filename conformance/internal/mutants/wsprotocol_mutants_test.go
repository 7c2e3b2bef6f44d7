package mutants

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// Each of the serverMutants and clientMutants has one defect in the WebSocket protocol. Its Breaks
// are patterns for [path.Match]. Every case in wsprotocolCases that a pattern matches must fail in
// at least one variant.
var serverMutants = []mutant{
	{
		Name: "closes-with-4321",
		Breaks: []string{
			"torture-server/close-*", "torture-server/text-of-*", "torture-server/ping-and-close",
			"torture-server/ping-of-126", "torture-server/ping-of-64KiB", "torture-server/p[io]ng-in-fragments",
			"torture-server/*continuation-of-nothing", "torture-server/masked-wrongly", "torture-server/length-*",
			"torture-server/opcode-*", "torture-server/rsv*",
		},
		Defect: defect{Handler: onWrites(closesWith(4321))},
	},
	{
		Name: "sends-after-close", Breaks: []string{"torture-server/close-1000", "torture-server/close-twice"},
		Defect: defect{Handler: onWrites(func(p []byte) []byte {
			if p[0] == bitFinal|opClose {
				return append(p, joinFrame(bitFinal|opPong, nil)...)
			}
			return p
		})},
	},
	{
		Name: "empty-pongs",
		Breaks: []string{
			"torture-server/ping-of-125", "torture-server/ping-of-bytes", "torture-server/pings",
			"torture-server/pings-in-drips",
		},
		Defect: defect{
			Handler: onWrites(func(p []byte) []byte {
				if p[0] == bitFinal|opPong {
					return joinFrame(bitFinal|opPong, nil)
				}
				return p
			}),
		},
	},
	{
		Name: "pongs-with-extra-payload", Breaks: []string{"torture-server/ping-empty"},
		Defect: defect{Handler: onWrites(func(p []byte) []byte {
			if p[0] == bitFinal|opPong {
				return joinFrame(bitFinal|opPong, []byte("too much"))
			}
			return p
		})},
	},
	{
		Name: "rejects-unsolicited-pongs", Breaks: []string{"torture-server/pong-unasked"},
		Defect: onClientFrames(func(f *clientFrame) {
			if f.first == bitFinal|opPong {
				f.first |= reserved
			}
		}),
	},
	{
		Name: "rejects-messages",
		Breaks: []string{
			"torture-server/text", "torture-server/text-empty", "torture-server/text-in-fragments",
			"torture-server/text-that-is-not-utf8", "torture-server/binary",
		},
		Defect: onClientFrames(func(f *clientFrame) {
			if op := f.first & opMask; op == opText || op == opBinary {
				f.first |= reserved
			}
		}),
	},
	{
		Name:   "accepts-reserved-bits",
		Breaks: []string{"torture-server/rsv*-on-text", "torture-server/rsv*-on-ping", "torture-server/rsv*-on-close"},
		Defect: onClientFrames(func(f *clientFrame) {
			f.first &^= reserved
		}),
	},
	{
		Name: "answers-any-opcode", Breaks: []string{"torture-server/opcode-*"},
		Defect: onClientFrames(func(f *clientFrame) {
			if op := f.first & opMask; op > opBinary && op != opClose && op != opClose+1 && op != opPong {
				f.first = bitFinal | opClose + 1 // a ping
			}
		}),
	},
	{
		Name: "accepts-any-close-code",
		Breaks: []string{
			"torture-server/close-0", "torture-server/close-999", "torture-server/close-100[456]",
			"torture-server/close-101[56]", "torture-server/close-2*", "torture-server/close-5000",
			"torture-server/close-65535", "torture-server/close-1100",
		},
		Defect: onClientFrames(func(f *clientFrame) {
			if f.first == bitFinal|opClose && len(f.payload) >= 2 {
				binary.BigEndian.PutUint16(f.payload, 1000)
			}
		}),
	},
	{
		Name: "accepts-any-close-reason",
		Breaks: []string{
			"torture-server/close-with-overlong", "torture-server/close-with-surrogate",
			"torture-server/close-with-half-a-letter",
		},
		Defect: onClientFrames(replaceNonASCII),
	},
}

var clientMutants = []mutant{
	{
		Name: "client-closes-with-4321", Breaks: []string{"torture-client/*"},
		Defect: defect{TransportClient: onClientConns(func(c *alteredConn) { c.OnWrite = closesWith(4321) })},
	},
	{
		Name: "client-sends-empty-pongs",
		Breaks: []string{
			"torture-client/ping-of-125", "torture-client/pings", "torture-client/event-in-drips",
			"torture-client/split-at-*",
		},
		Defect: defect{
			TransportClient: onClientConns(func(c *alteredConn) {
				c.OnWrite = func(p []byte) []byte {
					if p[0] == bitFinal|opPong {
						_, payload, _ := splitFrame(p)
						p[len(p)-len(payload)-5] = 0x80 // the mask bit and a payload length of zero
						return p[:len(p)-len(payload)]
					}
					return p
				}
			}),
		},
	},
	{
		Name: "client-reports-errors-as-clean-end",
		Breaks: []string{
			"torture-client/too-large*", "torture-client/not-utf8-*", "torture-client/rsv*", "torture-client/opcode-*",
			"torture-client/close-1002", "torture-client/*-within-an-event",
		},
		Defect: defect{TransportClient: onReceiveError(func(error) error { return io.EOF })},
	},
	{
		Name: "client-reports-clean-ends-as-errors",
		Breaks: []string{
			"torture-client/close-1000", "torture-client/close-with-letters", "torture-client/fragments-*",
			"torture-client/pong-unasked",
		},
		Defect: defect{
			TransportClient: onReceiveError(func(error) error { return &listwatch.Error{Code: listwatch.Unavailable} }),
		},
	},
	{
		Name: "client-ignores-the-size-limit",
		Breaks: []string{
			"torture-client/too-large", "torture-client/too-large-in-fragments",
			"torture-client/too-large-after-others",
		},
		Defect: defect{
			TransportClient: onDials(withLimit(1 << 20)),
		},
	},
	{
		Name: "client-accepts-invalid-utf8",
		Breaks: []string{
			"torture-client/not-utf8-continuation", "torture-client/not-utf8-overlong-two",
			"torture-client/not-utf8-latin-1",
		},
		Defect: defect{
			TransportClient: onClientConns(func(c *alteredConn) {
				c.OnRead = func(p []byte) []byte {
					for i := sampleOffset(p); i < len(p); {
						r, n := utf8.DecodeRune(p[i:])
						if r == utf8.RuneError && n == 1 {
							p[i] = '?'
						}
						i += n
					}
					return p
				}
			}),
		},
	},
}

// sampleOffset returns the offset in p at which the text of an event starts. The trials about UTF-8
// replace that text with invalid bytes. If p contains no event, sampleOffset returns len(p).
func sampleOffset(p []byte) int {
	const before = `"text":"`
	for i := range p {
		if len(p)-i >= len(before) && string(p[i:i+len(before)]) == before {
			return i + len(before)
		}
	}
	return len(p)
}

const (
	opMask   byte = 0x0f
	reserved byte = 0x70
)

// closesWith returns a function that replaces the code of a close frame. p is the data of one
// write. Other frames stay unchanged.
func closesWith(code uint16) func(p []byte) []byte {
	return func(p []byte) []byte {
		if len(p) < 2 || p[0] != bitFinal|opClose {
			return p
		}
		if p[1]&0x80 == 0 {
			return joinFrame(p[0], binary.BigEndian.AppendUint16(nil, code))
		}
		// The masking key is zero.
		return binary.BigEndian.AppendUint16([]byte{p[0], 0x82, 0, 0, 0, 0}, code)
	}
}

// A clientFrame is a WebSocket frame from a client. Its payload is already unmasked.
type clientFrame struct {
	first   byte
	payload []byte
}

func replaceNonASCII(f *clientFrame) {
	for i := range f.payload {
		if i >= 2 && f.payload[i] >= utf8.RuneSelf {
			f.payload[i] = '?'
		}
	}
}

// onClientFrames returns a defect that calls change for each frame of a client before the server
// reads it. change must keep the length of the payload.
func onClientFrames(change func(*clientFrame)) defect {
	return defect{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&alteredWriter{w, change}, r)
		})
	}}
}

type alteredWriter struct {
	http.ResponseWriter
	change func(*clientFrame)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (a *alteredWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Hijack takes over the connection and alters the frames that are read from it.
func (a *alteredWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := http.NewResponseController(a.ResponseWriter).Hijack()
	return &alteredConn{Conn: c, OnRead: func(p []byte) []byte {
		changeFrames(p, a.change)
		return p
	}}, buffers, err
}

// changeFrames calls change for the complete client frames at the start of p. It stops at the first
// frame of 126 bytes or more.
func changeFrames(p []byte, change func(*clientFrame)) {
	for len(p) >= 6 && p[1]&0x80 != 0 && p[1] < 0x80|126 {
		end := 6 + int(p[1]&^0x80)
		if len(p) < end {
			return
		}
		mask, payload := p[2:6], p[6:end]
		unmask := func() {
			for i := range payload {
				payload[i] ^= mask[i%4]
			}
		}
		unmask()
		f := clientFrame{p[0], payload}
		change(&f)
		p[0] = f.first
		unmask()
		p = p[end:]
	}
}

// brokenBy returns the cases that must fail with m.
func brokenBy(t *testing.T, m mutant) (trials []harness.Case) {
	t.Helper()
	for _, pattern := range m.Breaks {
		before := len(trials)
		for _, c := range wsprotocolCases() {
			ok, err := path.Match(pattern, c.ID)
			if err != nil {
				t.Fatalf("%s: %s: %v", m.Name, pattern, err)
			}
			if ok {
				trials = append(trials, c)
			}
		}
		if len(trials) == before {
			t.Errorf("%s: the pattern %s matches no case", m.Name, pattern)
		}
	}
	return trials
}

// The mutants run in parallel, because they spend most of their time waiting for frames that a
// mutant does not send.
func TestFrameCasesDetectTheirMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	for _, m := range slices.Concat(serverMutants, clientMutants) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for _, c := range brokenBy(t, m) {
				if !detects(t, c, m.Target()) {
					t.Errorf("%s passes with the mutant", c.ID)
				}
			}
		})
	}
}

func TestEveryFrameCaseHasAMutant(t *testing.T) {
	detected := map[string]bool{}
	for _, m := range slices.Concat(serverMutants, clientMutants) {
		for _, c := range brokenBy(t, m) {
			detected[c.ID] = true
		}
	}
	for _, c := range wsprotocolCases() {
		if !detected[c.ID] {
			t.Errorf("no mutant breaks %s, so nothing shows that the case can fail", c.ID)
		}
	}
}
