//go:build !race

package field

import (
	"testing"
	"time"
)

// rounds is the number of times that a slow request is repeated. The fastest counts, because the
// machine may be busy during the others.
const rounds = 5

// slack is added to the direct time of a request, multiplied by figure.factor.
const slack = 50 * time.Millisecond

// A figure is the shortest time of a request, directly and through the relay.
type figure struct {
	what            string
	factor          time.Duration // the limit for the relay, as a multiple of the direct time
	direct, relayed time.Duration // zero before the first request
}

// add counts the times of another request.
func (f *figure) add(direct, relayed time.Duration) {
	if f.direct == 0 || direct < f.direct {
		f.direct = direct
	}
	if f.relayed == 0 || relayed < f.relayed {
		f.relayed = relayed
	}
}

// withinLimit reports whether the relay is fast enough.
func (f *figure) withinLimit() bool { return f.relayed <= f.factor*f.direct+slack }

// check logs the figure. It fails the test if the relay is too slow.
func (f *figure) check(t *testing.T) {
	t.Helper()
	t.Logf("%s: directly %v, relayed %v", f.what, f.direct, f.relayed)
	if !f.withinLimit() {
		t.Errorf("%s takes %v through the relay, directly %v", f.what, f.relayed, f.direct)
	}
}
