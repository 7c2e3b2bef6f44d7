package client

import (
	"context"
	"io"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A follower is the work behind a watcher: it reads one stream after another. Watch opens the first one; then a goroutine owns it.
type follower struct {
	// Immutable after construction.
	remote *Remote
	query  listwatch.Query
	url    *url.URL
	out    *watcher

	// Owned by the goroutine.
	progress reflector.Progress
	epoch    string            // that progress is of; empty: not known
	state    []listwatch.Event // initial events got by a list and not delivered yet
	retry    retry
}

// run feeds the watcher until ctx ends or there is nothing more to be had.
func (f *follower) run(ctx context.Context, s *stream) {
	for {
		err := f.follow(ctx, s)
		s.close()
		if s, err = f.again(ctx, s, err); err != nil {
			f.out.end(err)
			f.out.cancel()
			return
		}
	}
}

// follow delivers what s brings, and returns how it ended.
func (f *follower) follow(ctx context.Context, s *stream) error {
	for len(f.state) > 0 {
		e := f.state[0]
		f.state = f.state[1:]
		if err := f.send(ctx, s, e); err != nil {
			return err
		}
	}
	f.state = nil
	for {
		frame, err := s.receive()
		if err != nil {
			return err
		}
		e, err := frame.TrustedEvent()
		if err != nil {
			return err
		}
		if err := f.deliver(ctx, s, e); err != nil {
			return err
		}
	}
}

func (f *follower) deliver(ctx context.Context, s *stream, e listwatch.Event) error {
	f.remote.learnFrom(e.Object)
	isPlain := e.Type == listwatch.Bookmark
	pass, err := f.progress.Admit(&e)
	if err != nil || !pass {
		return err
	}
	switch {
	case e.Type == listwatch.Synced && isPlain:
		// The object of a bookmark that stands for the end of the initial events must say so, too.
		e = listwatch.NewBookmark(listwatch.Describe(f.remote), e.Version, true)
		fallthrough
	case e.Type == listwatch.Synced || isPlain:
		if !f.query.Bookmarks {
			return nil
		}
	}
	return f.send(ctx, s, e)
}

// send gives e to the reader, and waits until there is room for more. While it waits the silence of s means nothing.
func (f *follower) send(ctx context.Context, s *stream, e listwatch.Event) error {
	if f.out.push(e) {
		return nil
	}
	s.idle.hold()
	defer s.idle.letGo()
	select {
	case <-f.out.room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again opens the stream that follows s, which ended with err. An error is what the reader is to get.
func (f *follower) again(ctx context.Context, s *stream, err error) (*stream, error) {
	for ctx.Err() == nil {
		f.blame(s, err)
		if final := f.final(s, err); final != nil {
			return nil, final
		}
		wait := f.retry.waits.After(f.remote.Backoff, endOf(s, err))
		f.remote.Trace.lost(err, wait)
		if !reflector.Sleep(ctx, wait) {
			break
		}
		if f.progress.Initial {
			s, err = f.begin(ctx)
		} else {
			s, err = f.resume(ctx)
		}
		if err == nil {
			return s, nil
		}
	}
	return nil, io.EOF
}
