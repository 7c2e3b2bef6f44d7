package client

import (
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

const (
	// patience is how long a server may be behind a version that it was at before: it may be another replica.
	patience = time.Minute
	// most is how often in a row a stream may fail in a way that time alone doesn't mend.
	most = 2
)

// retry is what a follower remembers of its failures.
type retry struct {
	waits   reflector.Waits
	stuck   int       // how many streams in a row were broken off for what they said, with nothing new between
	barren  int       // how many streams in a row brought nothing
	behind  time.Time // since when the server doesn't know the version; zero: it does
	refresh bool      // the credentials are not good any more
}

// endOf returns how s ended; nil: it could not be opened.
func endOf(s *stream, err error) reflector.End {
	if s == nil {
		return reflector.End{Err: err}
	}
	return reflector.End{Opened: true, Lived: s.lived(), Received: s.received, Err: err}
}

// blame finds out whether the transport of s is at fault for its end.
func (f *follower) blame(s *stream, err error) {
	if s == nil {
		return
	}
	if err == error(errIdle) && f.progress.Initial {
		// It may be waiting for changes: not every server that ignores what it doesn't know says so.
		f.remote.learnPlain()
	}
	if end := endOf(s, err); s.received > 0 || end.IsClean() && !end.IsBrief() {
		f.retry.barren = 0
	} else {
		f.retry.barren++
	}
	if s.broken || f.retry.barren >= most {
		f.retry.barren = 0
		f.remote.state.ladder.demote(s.rung)
	}
}

// final returns what the reader is to be told for err; nil: nothing, another stream will do. s is nil where none could be opened.
func (f *follower) final(s *stream, err error) error {
	if f.progress.Moved && !f.progress.Initial {
		f.retry.stuck, f.retry.behind = 0, time.Time{}
	}
	f.progress.Moved = false
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
	if f.progress.Initial && !f.out.startOver() {
		return beginAgain(err)
	}
	return nil
}

// finalNotYet bears with a server that is behind, for a while, where it is known to have been further.
func (f *follower) finalNotYet(err error) error {
	switch {
	case !f.progress.Proven:
		return err
	case f.retry.behind.IsZero():
		f.retry.behind = time.Now()
	case time.Since(f.retry.behind) > patience:
		return &listwatch.Error{
			Code: listwatch.Expired, Op: "watch",
			Message: "the server is not at version " + f.progress.Version.String() + " any more: it has another state, or an older one", Err: err,
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
