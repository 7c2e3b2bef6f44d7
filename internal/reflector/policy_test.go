package reflector

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

// retryCorruptOnce retries once after a malformed event, and always after a lost connection. It
// leaves all other failures to the default rules.
func retryCorruptOnce(end WatchEnd, _ *ResumePoint) Action {
	switch listwatch.CodeOf(end.Err) {
	case listwatch.Unavailable:
		return Retry
	case listwatch.Corrupt:
		return RetryOnce
	}
	return Stop
}

func TestPolicyResumesBeforeTheRulesRelist(t *testing.T) {
	unavailable, corrupt := failsWith(listwatch.Unavailable), failsWith(listwatch.Corrupt)
	for _, tt := range []struct {
		name          string
		watches       []scriptedWatch
		reject        string
		requests      string
		reported      string // the codes with which Reflector.Lost is called
		policyReports int    // the number of calls of Policy.Lost
	}{
		{
			"a malformed event is requested once more",
			[]scriptedWatch{sends(t, "=5", corrupt), {end: corrupt}, sends(t, "=6", nil)},
			"", "state; from 5; state>=5", "corrupt", 2,
		},
		{
			"progress starts the count again",
			[]scriptedWatch{sends(t, "=5", corrupt), sends(t, "+a@6 !6", corrupt), sends(t, "+b@7 !7", nil)},
			"", "state; from 5; from 6", "", 2,
		},
		{
			"the Policy is not asked about a rejected event",
			[]scriptedWatch{sends(t, "=5 +a@6", nil), sends(t, "=6", nil)},
			"+a@6", "state; state>=6", "corrupt", 1,
		},
		{
			"lost connections resume silently",
			[]scriptedWatch{sends(t, "=5", unavailable), {refuse: unavailable}, sends(t, "!6", nil)},
			"", "state; from 5; from 5", "", 2,
		},
		{
			"an unreachable source is reported until the state is complete",
			[]scriptedWatch{{refuse: unavailable}, sends(t, "=5", nil)},
			"", "state; state", "unavailable", 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &scriptedSource{watches: tt.watches}
				var reported []string
				policyReports := 0
				runFor(t, &Reflector{
					Source: source, Sink: &recordingSink{reject: tt.reject},
					Policy: Policy{Decide: retryCorruptOnce, Lost: func(error, time.Duration) { policyReports++ }},
					Lost:   func(err error, _ time.Duration, _ bool) { reported = append(reported, listwatch.CodeOf(err).Error()) },
				}, 10*time.Minute)
				if diff := cmp.Diff(tt.requests, strings.Join(formatRequests(source.requests), "; ")); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if got := strings.Join(reported, " "); got != tt.reported || policyReports != tt.policyReports {
					t.Errorf("Lost was called with %q, and that of the Policy %d times; want %q and %d", got, policyReports, tt.reported, tt.policyReports)
				}
			})
		})
	}
}

func TestReaderReceivesWhatThePolicyCannotResume(t *testing.T) {
	expired, corrupt := failsWith(listwatch.Expired), failsWith(listwatch.Corrupt)
	for _, tt := range []struct {
		name    string
		watches []scriptedWatch
		want    error
	}{
		{"expired history", []scriptedWatch{sends(t, "=5", expired)}, expired},
		{"malformed twice", []scriptedWatch{sends(t, "=5", corrupt), {end: corrupt}}, corrupt},
		{"a state cut short", []scriptedWatch{sends(t, "(a@3)", failsWith(listwatch.Unavailable))}, io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Reflector{
					Source: &scriptedSource{watches: tt.watches}, Sink: &recordingSink{}, Policy: Policy{Decide: retryCorruptOnce},
					Restart: func(error, *ResumePoint) error { return io.ErrUnexpectedEOF },
				}
				if err := r.Run(t.Context()); err != tt.want {
					t.Errorf("Run returned %v, want %v", err, tt.want)
				}
			})
		})
	}
}
