package readcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

// A follower prints the events of a watch. When the history of the server has expired, it continues
// with the difference to the state that it has printed.
type follower struct {
	source    listwatch.Source
	query     listwatch.Query
	out       *bufio.Writer
	output    string // the format of the events
	bookmarks bool   // print bookmarks, too
	left      int    // the number of events to print before the end; negative for no limit

	file *positionFile // nil without --persist

	position // what was printed
}

// errExpiredState means that the server sent the whole state and not the difference.
var errExpiredState = errors.New("the server does not have the difference")

func (f *follower) run(ctx context.Context, notes io.Writer) error {
	f.query.Bookmarks = true
	w, err := f.open(ctx, notes)
	for err == nil {
		err = f.print(ctx, w)
		_ = w.Close() // its error does not concern the printed events
		if f.has.ID == "" || !errors.Is(err, listwatch.Expired) {
			break
		}
		expired := err
		fmt.Fprintf(notes, "listwatch: the history since version %d has expired; requesting the difference\n", f.has.Version)
		if w, err = f.difference(ctx); err == errExpiredState {
			err = expired
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.file.save(f.position, true))
}

// open returns the first watch. It begins with the difference to the position in the file if the
// server knows it, and otherwise with the whole state.
func (f *follower) open(ctx context.Context, notes io.Writer) (w listwatch.Watcher, err error) {
	if f.position, err = f.file.load(); err != nil {
		fmt.Fprintf(notes, "listwatch: %v; printing the whole state\n", err)
	}
	if f.has.ID != "" {
		if w, err = f.difference(ctx); !errors.Is(err, errExpiredState) {
			return w, err
		}
		fmt.Fprintf(notes, "listwatch: the server does not know what has changed since version %d; printing the whole state\n",
			f.has.Version)
		f.position = position{}
	}
	return f.source.Watch(ctx, f.query)
}

// difference prints the difference to the state that was printed, and returns the watch that
// continues after it.
func (f *follower) difference(ctx context.Context) (listwatch.Watcher, error) {
	q := f.query
	q.Start, q.Version, q.InitialEvents, q.Since = listwatch.StartAt, f.newest, listwatch.InitialEventsYes, f.has
	w, err := f.source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	var initial []listwatch.Event
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			_ = w.Close()
			return nil, err
		}
		initial = append(initial, e)
		if e.Type != listwatch.Synced {
			continue
		}
		if _, ok := e.Since(); ok {
			return &resumed{Watcher: w, pending: initial}, nil
		}
		break
	}
	_ = w.Close()
	return nil, errExpiredState
}

// print writes events as they arrive, and flushes after each batch.
func (f *follower) print(ctx context.Context, w listwatch.Watcher) error {
	var batch [64]listwatch.Event
	for f.left != 0 {
		n, err := w.Next(ctx, batch[:])
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			isBookmark := e.Type == listwatch.Bookmark || e.Type == listwatch.Synced
			if f.left == 0 && !isBookmark {
				break // it is not printed, so the position must not include it
			}
			if f.note(e); isBookmark && !f.bookmarks || f.left == 0 {
				continue
			}
			writeEvent(f.out, e, f.output, time.Now())
			if f.left > 0 {
				f.left--
			}
		}
		if err := f.out.Flush(); err != nil {
			return err
		}
		if err := f.file.save(f.position, false); err != nil {
			return err
		}
	}
	return nil
}

// note records the versions of e. Several events may have the same version, so only a newer event
// or a bookmark shows that a version is complete.
func (f *follower) note(e listwatch.Event) {
	switch {
	case e.Type == listwatch.Synced:
		f.has, f.newest = e.State(), e.Version
	case e.Type == listwatch.Bookmark:
		f.has.Version, f.newest = e.Version, e.Version
	case !e.Initial && e.Version > f.newest:
		f.has.Version, f.newest = f.newest, e.Version
	}
}

// A resumed is a Watcher that returns some events before the events of another Watcher.
type resumed struct {
	listwatch.Watcher
	pending []listwatch.Event
}

// Next implements [listwatch.Watcher].
func (r *resumed) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if n := copy(dst, r.pending); n > 0 {
		r.pending = r.pending[n:]
		return n, nil
	}
	return r.Watcher.Next(ctx, dst)
}
