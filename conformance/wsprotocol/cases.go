package wsprotocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
)

// Cases returns what is asked of WebSockets beyond the rules of the catalogue, in the manner of the Autobahn suite: fragments, control
// frames between them, UTF-8 at every split, close codes, lengths. The groups are torture-server, where a client by hand meets the server,
// and torture-client, where a server by hand meets the client. They are no part of [All].
func Cases() []harness.Case {
	var all []harness.Case
	for _, trial := range serverTrials() {
		all = append(all, harness.Case{
			ID: "torture-server/" + trial.name, Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime}, Rule: trial.rule(), Needs: harness.Writes | harness.SoleWriter,
			Run: trial.onServer,
		})
	}
	for _, trial := range clientTrials() {
		all = append(all, harness.Case{
			ID: "torture-client/" + trial.name, Level: harness.Must, Subject: harness.Client, Transports: "ws", Modes: []harness.Mode{harness.RealTime}, Rule: trial.rule(), Needs: harness.InProcess,
			Run: trial.onClient,
		})
	}
	slices.SortFunc(all, func(a, b harness.Case) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// A trial is what one end sends and what the other is to make of it.
type trial struct {
	name string
	sent []wsframe.Frame
	// raw, where it is not nil, are the bytes to send instead.
	raw []byte
	// drips: the bytes go one by one.
	drips bool

	// pongs are the texts of those that answer, in order; the last of them must come.
	pongs []string
	// codes are the close codes that are right, 0 being a close frame without one; none: the stream goes on.
	codes []int
	// A client is to return event, so often; and then, where codes are not empty, an end that is clean or not.
	events int
	clean  bool
}

func (t *trial) rule() string {
	switch {
	case len(t.codes) == 0:
		return fmt.Sprintf("%s: the stream goes on", t.name)
	case t.clean:
		return fmt.Sprintf("%s: the stream ends cleanly", t.name)
	}
	return fmt.Sprintf("%s: the connection is closed with %d", t.name, t.codes)
}

// bytes returns what goes over the wire.
func (t *trial) bytes(masked bool) []byte {
	if t.raw != nil {
		return t.raw
	}
	var all []byte
	for _, f := range t.sent {
		f.Masked = f.Masked != masked // one that is marked does what its end must not
		all = append(all, f.Bytes()...)
	}
	return all
}

// writes returns how bytes are handed to the connection.
func (t *trial) writes(masked bool) [][]byte {
	all := t.bytes(masked)
	if t.drips {
		return slices.Collect(slices.Chunk(all, 1))
	}
	return [][]byte{all}
}

// rightPong reports whether a pong is right behind those that came before, of which as many of the pongs are done with. It returns how many
// are then: the answer to one of several may stand for all before it (RFC 6455, section 5.5.3).
func (t *trial) rightPong(text string, done int) (int, bool) {
	i := slices.Index(t.pongs[done:], text)
	return done + i + 1, i >= 0
}
