package reflector

import (
	"io"
	"math"
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
		name     string
		watches  []scriptedWatch
		reject   string
		requests string
		reported string // the codes with which both Lost hooks are called
	}{
		{
			"a malformed event is requested once more",
			[]scriptedWatch{sends(t, "=5", corrupt), {end: corrupt}, sends(t, "=6", nil)},
			"", "state; from 5; state>=5", "corrupt corrupt",
		},
		{
			"progress starts the count again",
			[]scriptedWatch{sends(t, "=5", corrupt), sends(t, "+a@6 !6", corrupt), sends(t, "+b@7 !7", nil)},
			"", "state; from 5; from 6", "corrupt corrupt",
		},
		{
			"the Policy is not asked about a rejected event",
			[]scriptedWatch{sends(t, "=5 +a@6", nil), sends(t, "=6", nil)},
			"+a@6", "state; state>=6", "corrupt",
		},
		{
			"lost connections resume",
			[]scriptedWatch{sends(t, "=5", unavailable), {refuse: unavailable}, sends(t, "!6", nil)},
			"", "state; from 5; from 5", "unavailable unavailable",
		},
		{
			"an unreachable source is reported until the state is complete",
			[]scriptedWatch{{refuse: unavailable}, sends(t, "=5", nil)},
			"", "state; state", "unavailable",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &scriptedSource{watches: tt.watches}
				var reported, policyReported []string
				runFor(t, &Reflector{
					Source: source, Sink: &recordingSink{reject: tt.reject},
					Policy: Policy{Decide: retryCorruptOnce, Lost: func(err error, _ time.Duration) {
						policyReported = append(policyReported, listwatch.CodeOf(err).Error())
					}},
					Lost: func(err error, _ time.Duration,
						_ bool,
					) {
						reported = append(reported, listwatch.CodeOf(err).Error())
					},
				}, 10*time.Minute)
				if diff := cmp.Diff(tt.requests, strings.Join(formatRequests(source.requests), "; ")); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				for _, got := range [][]string{reported, policyReported} {
					if got := strings.Join(got, " "); got != tt.reported {
						t.Errorf("a Lost hook was called with %q, want %q", got, tt.reported)
					}
				}
			})
		})
	}
}

func TestPolicyHasTheDefaultBackoff(t *testing.T) {
	for _, tt := range []struct {
		own  listwatch.Backoff
		want int
	}{{listwatch.Backoff{}, 1}, {listwatch.Backoff{Min: -1, Max: -1}, 2}} {
		synctest.Test(t, func(t *testing.T) {
			source := &scriptedSource{watches: []scriptedWatch{
				{refuse: failsWith(listwatch.Unavailable)},
				sends(t, "=5", nil),
			}}
			runFor(t, &Reflector{
				Source: source, Sink: &recordingSink{}, Backoff: tt.own,
				Policy: Policy{Backoff: listwatch.Backoff{Min: math.MaxInt64}},
			}, 10*time.Minute)
			if got := len(source.requests); got != tt.want {
				t.Errorf("Backoff %v: %d requests, want %d", tt.own, got, tt.want)
			}
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
		{
			"a state cut short",
			[]scriptedWatch{sends(t, "(a@3)", failsWith(listwatch.Unavailable))},
			io.ErrUnexpectedEOF,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Reflector{
					Source: &scriptedSource{watches: tt.watches}, Sink: &recordingSink{},
					Policy:  Policy{Decide: retryCorruptOnce},
					Restart: func(error, *ResumePoint) error { return io.ErrUnexpectedEOF },
				}
				if err := r.Run(t.Context()); err != tt.want {
					t.Errorf("Run returned %v, want %v", err, tt.want)
				}
			})
		})
	}
}
