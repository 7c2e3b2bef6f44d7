package informer

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace is told what a Reflector does that its Sink doesn't see. Each hook may be nil; it is called from the goroutine at work and must be
// quick.
type Trace struct {
	// Lost says why a stream ended, or could not be opened, and that another will be tried after wait. err is io.EOF where the Source ended
	// it cleanly. relist: the next one begins with the whole state.
	Lost func(err error, wait time.Duration, relist bool)
	// Replaced says that the whole state was taken over: how many objects, at which version, how long after the first of them.
	Replaced func(objects int, version listwatch.Version, took time.Duration)
	// Refused says that an object could not be decoded or transformed. The state is asked for again until it can.
	DecodeFailed func(o *listwatch.Object, err error)
}

func (t *Trace) lost(err error, wait time.Duration, relist bool) {
	if t != nil && t.Lost != nil {
		t.Lost(err, wait, relist)
	}
}

func (t *Trace) replaced(objects int, version listwatch.Version, took time.Duration) {
	if t != nil && t.Replaced != nil {
		t.Replaced(objects, version, took)
	}
}

func (t *Trace) refused(o *listwatch.Object, err error) {
	if t != nil && t.DecodeFailed != nil {
		t.DecodeFailed(o, err)
	}
}
