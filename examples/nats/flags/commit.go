package flags

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

var _ store.Backend = (*Source)(nil)

// Commit implements [store.Backend]. The Cache implements its other methods. So the bucket becomes
// a store that any number of servers can share.
func (s *Source) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	subject := s.subjectOf(c.Key)
	last, err := s.lastRevision(ctx, subject, c)
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(subject)
	if c.New != nil {
		m.Data = c.New.Seal(0).Data // a reader takes the version from the revision
	} else {
		m.Header.Set("KV-Operation", "DEL")
	}
	// NATS refuses the message if another one has changed the key.
	ack, err := s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(last))
	if e, ok := errors.AsType[*jetstream.APIError](err); ok &&
		e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return nil, conflict()
	}
	if err == nil {
		err = s.Wait(ctx, version(ack.Sequence)) // so that the writer can read its write
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &listwatch.Error{
			Code: listwatch.Unavailable, Message: "NATS did not acknowledge the write", Err: err,
		}
	}
	if c.New == nil {
		return c.Old.At(version(ack.Sequence)), nil
	}
	return c.New.Seal(version(ack.Sequence)), nil
}

// lastRevision returns the revision that the key must still have. It is zero if the key was never
// written, and the revision of the delete if it was deleted or has expired.
func (s *Source) lastRevision(ctx context.Context, subject string, c store.Change) (uint64, error) {
	if c.Old != nil {
		return uint64(c.Old.Version) - 1, nil
	}
	m, err := s.stream.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, c.Check(nil)
	case err != nil:
		return 0, &listwatch.Error{Code: listwatch.Unavailable, Err: err}
	case !isDelete(m.Header):
		return 0, conflict()
	}
	return m.Sequence, c.Check(nil)
}

func conflict() error {
	return &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
}
