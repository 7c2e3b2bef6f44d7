package conformance_test

import (
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/framing"
)

func TestFramings(t *testing.T) {
	for _, f := range framing.Default().Framers() {
		t.Run(f.MediaType(), func(t *testing.T) { conformance.TestFramer(t, f) })
	}
}
