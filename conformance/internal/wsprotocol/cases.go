package wsprotocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

// Cases returns the cases of this package. Cases in the group torture-server send frames from
// a scripted client to the server, cases in the group torture-client from a scripted server
// to the client. [cases.All] does not include them.
func Cases() []harness.Case {
	var all []harness.Case
	for _, trial := range serverTrials() {
		all = append(all, harness.Case{
			ID: "torture-server/" + trial.name, Subject: harness.Server, Transports: "ws", Rule: trial.rule(),
			Needs: harness.OwnCollection,
			Run:   trial.onServer,
		})
	}
	for _, trial := range clientTrials() {
		all = append(all, harness.Case{
			ID: "torture-client/" + trial.name, Subject: harness.Client, Transports: "ws", Rule: trial.rule(),
			Needs: harness.InProcess,
			Run:   trial.onClient,
		})
	}
	slices.SortFunc(all, func(a, b harness.Case) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// A trial is a sequence of frames that one end sends, and the expected reaction of the other
// end, which is under test.
type trial struct {
	name string
	sent []wsframe.Frame
	// raw, if not nil, is sent instead of the frames.
	raw []byte
	// byteByByte sends each byte with a write of its own.
	byteByByte bool

	// pongs are the payloads of the expected pongs, in order. All but the last may be
	// missing.
	pongs []string
	// codes are the acceptable close codes; 0 stands for a close frame without a code. If
	// empty, the stream must continue.
	codes []int
	// events is the number of events that a client must return before the stream ends.
	// clean means that the client must report a clean end; it matters only if codes is
	// not empty.
	events int
	clean  bool
}

func (t *trial) rule() string {
	switch {
	case len(t.codes) == 0:
		return fmt.Sprintf("%s: the stream continues", t.name)
	case t.clean:
		return fmt.Sprintf("%s: the stream ends cleanly", t.name)
	}
	return fmt.Sprintf("%s: the connection is closed with %d", t.name, t.codes)
}

// bytes returns the bytes to send. masked is true for frames of a client.
func (t *trial) bytes(masked bool) []byte {
	if t.raw != nil {
		return t.raw
	}
	var all []byte
	for _, f := range t.sent {
		f.Masked = f.Masked != masked // in a trial, Masked means that the sender masks wrongly
		all = append(all, f.Bytes()...)
	}
	return all
}

// writes returns the bytes to send, split into writes.
func (t *trial) writes(masked bool) [][]byte {
	all := t.bytes(masked)
	if t.byteByByte {
		return slices.Collect(slices.Chunk(all, 1))
	}
	return [][]byte{all}
}

// matchPong searches t.pongs for the given text, and starts at the index done. It returns the index
// after the match, and whether there was a match. It may skip pongs, because an endpoint may answer
// only the last of several pings (RFC 6455, section 5.5.3).
func (t *trial) matchPong(text string, done int) (int, bool) {
	i := slices.Index(t.pongs[done:], text)
	return done + i + 1, i >= 0
}
