package mutants

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases"
	"github.com/listwatch/listwatch/framing"
)

// completeLines returns a decoder that treats each line as one event, and is correct otherwise.
func completeLines(r io.Reader) framing.Decoder {
	in := bufio.NewReader(r)
	return decodeFunc(func() (framing.WatchEvent, error) {
		line, err := in.ReadBytes('\n')
		switch {
		case err == nil:
			return framing.JSON{}.NewDecoder(bytes.NewReader(line), 0).Decode()
		case err == io.EOF && len(line) > 0:
			err = io.ErrUnexpectedEOF
		}
		return framing.WatchEvent{}, err
	})
}

// The newline has a case of its own, so that other cases do not fail for a reason that they do not
// state.
func TestOneCaseIsAboutNewlines(t *testing.T) {
	target := mutant{Name: "client-splits-lines", Defect: defect{
		TransportClient: withDecoder(framing.JSON{}, completeLines),
	}}.Target()
	target.Variants = []string{"h1", "h2"} // a WebSocket message has no newline
	var failed []string
	for _, c := range cases.All() {
		if c.Group() == "framing" && c.Subject == harness.Client && c.CoveredBy == "" && detects(t, c, target) {
			failed = append(failed, c.ID)
		}
	}
	if want := []string{"framing/json-stream-decoder"}; !slices.Equal(failed, want) {
		t.Errorf("a client that splits lines fails %q, want %q", failed, want)
	}
}
