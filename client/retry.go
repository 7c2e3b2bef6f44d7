package client

import (
	"io"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// Backoff is how long a watcher waits before it opens another stream: at random up to Min, and up to twice as long after each failure, up
// to Max. So clients that were cut off together don't come back together. What the server asks for, by Retry-After, is
// waited for first. After a clean end Min is the bound, whatever failed before.
type Backoff struct {
	// Min is zero for 800 ms, Max zero for 30 s. Negative: the least there is.
	Min, Max time.Duration
	// Healthy is how long a stream must have lived to make what failed before it forgotten. Zero: 2 minutes; negative: any
	// stream does.
	Healthy time.Duration
}

const (
	// briefly is how long a stream without any event must live not to be a failure.
	briefly = time.Second
	// afterBrief is waited at least after such a stream.
	afterBrief = 100 * time.Millisecond
	// patience is how long a server may be behind a version that it was at before: it may be another replica.
	patience = time.Minute
	// most is how often in a row a stream may fail in a way that time alone doesn't mend.
	most = 2
)

// or returns v, or zero's default where v is zero.
func or(v, zero time.Duration) time.Duration {
	if v == 0 {
		return zero
	}
	return v
}

// retry is what a follower remembers of its failures.
type retry struct {
	step    int       // how many waits in a row have doubled
	stuck   int       // how many streams in a row were broken off for what they said, with nothing new between
	barren  int       // how many streams in a row brought nothing
	behind  time.Time // since when the server doesn't know the version; zero: it does
	refresh bool      // the credentials are not good any more
}

// wait returns how long to wait after err: that of s, or, where s is nil, of an attempt to open one.
func (r *retry) wait(b Backoff, s *stream, err error) time.Duration {
	if s != nil && s.lived() >= or(b.Healthy, 2*time.Minute) {
		r.step = 0
	}
	bound := max(or(b.Min, 800*time.Millisecond), 1)
	if isClean(err) && !s.isBrief() {
		return jitter(bound)
	}
	longest := max(or(b.Max, 30*time.Second), bound)
	for i := 0; i < r.step && bound < longest; i++ {
		bound *= 2
	}
	r.step++
	wait := jitter(min(bound, longest)) + listwatch.AsError(err).RetryAfter()
	if s.isBrief() {
		wait += afterBrief
	}
	return wait
}

// jitter returns a random part of d.
func jitter(d time.Duration) time.Duration { return 1 + rand.N(d) }

// isBrief reports whether s lived shortly and for nothing. No stream, nil, is not brief.
func (s *stream) isBrief() bool { return s != nil && s.received == 0 && s.lived() < briefly }

// isClean reports whether err is a clean end. errors.Is won't do: a connection that broke while it was dialled may wrap io.EOF.
func isClean(err error) bool { return err == io.EOF }

// blame finds out whether the transport of s is at fault for its end.
func (f *follower) blame(s *stream, err error) {
	if s == nil {
		return
	}
	if err == error(errIdle) && f.progress.initial {
		// It may be waiting for changes: not every server that ignores what it doesn't know says so.
		f.remote.learnPlain()
	}
	if s.received > 0 || isClean(err) && !s.isBrief() {
		f.retry.barren = 0
	} else {
		f.retry.barren++
	}
	if s.broken || f.retry.barren >= most {
		f.retry.barren = 0
		f.remote.state.ladder.demote(s.rung)
	}
}

// final returns what the reader is to be told for err; nil: nothing, another stream will do. s is as for wait.
func (f *follower) final(s *stream, err error) error {
	if f.progress.moved && !f.progress.initial {
		f.retry.stuck, f.retry.behind = 0, time.Time{}
	}
	f.progress.moved = false
	switch listwatch.CodeOf(err) {
	case listwatch.Unknown:
		if transport.Stopped(err) {
			return io.EOF
		}
	case listwatch.Unavailable, listwatch.TooSlow:
	case listwatch.NotYet:
		if err := f.finalNotYet(err); err != nil {
			return err
		}
	case listwatch.Unauthorized:
		if s == nil || f.remote.Header == nil {
			return err // fresh credentials have been tried, or there are none
		}
		f.retry.refresh = true
		fallthrough
	case listwatch.Corrupt:
		if f.retry.stuck++; f.retry.stuck >= most {
			return err
		}
	default:
		return err
	}
	if f.progress.initial && !f.out.startOver() {
		return beginAgain(err)
	}
	return nil
}

// finalNotYet bears with a server that is behind, for a while, where it is known to have been further.
func (f *follower) finalNotYet(err error) error {
	switch {
	case !f.progress.proven:
		return err
	case f.retry.behind.IsZero():
		f.retry.behind = time.Now()
	case time.Since(f.retry.behind) > patience:
		return &listwatch.Error{
			Code: listwatch.Expired, Op: "watch",
			Message: "the server is not at version " + f.progress.version.String() + " any more: it has another state, or an older one", Err: err,
		}
	}
	return nil
}

// beginAgain is the end of a watch that was cut off within the initial events, of which the reader has some. The rest can't be asked
// for, and the state may be another by now, without objects that the reader has seen: only the reader can drop them. The cause is
// told and not wrapped: an io.EOF in it would look like a clean end.
func beginAgain(cause error) error {
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "watch",
		Message: "the stream ended within the initial events: what came of them is no state; begin again (" + cause.Error() + ")",
	}
}
