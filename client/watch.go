package client

import (
	"context"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/eventqueue"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

// Watch sends the first request and returns its error, if any. ctx bounds only that request.
// The Watcher recovers from later failures; the package comment lists the errors that it
// returns.
//
// If the server refuses to send initial events (KEP-3157), the Remote lists the objects instead,
// and the watch begins at the version of the list. The reader sees no difference. For the next
// hour, every Watch of the Remote that needs the state begins with such a list. If such a list must
// be repeated, the watch after it opens when the reader has made room in the queue. A reader that
// takes longer than the history of the server then gets [listwatch.Expired].
//
// A Watch without initial events and with StartNewest or StartAny first lists one object and
// starts at the version of that list, because a watch without a version could not be
// resumed.
//
// If Start is StartAt and the epoch of the server has changed, the error is [listwatch.Expired]. A
// Query does not name an epoch, so the Remote assumes that the version belongs to the newest epoch
// that the server has reported so far.
func (r *Remote) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkQuery(q, true); err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sink := &queueSink{Queue: eventqueue.New(q.Bookmarks)}
	stop := context.AfterFunc(ctx, cancel)
	f, err := r.follow(life, q, sink)
	if !stop() && err == nil {
		_ = f.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, transport.DialError(ctx, "watch", err)
	}
	sink.hasReader = true
	go func() { // ends after Close of the watcher, which does not wait for it
		err := f.Run(life)
		if life.Err() != nil || isNoContent(err) {
			err = io.EOF
		}
		sink.End(err)
		cancel()
	}()
	return &watcher{sink.Queue, cancel}, nil
}

// follow returns a Reflector that passes the events of q to sink, and opens its first watch.
func (r *Remote) follow(ctx context.Context, q listwatch.Query, sink *queueSink) (*reflector.Reflector, error) {
	source := r.Connect(0).(*connections)
	if !q.Bookmarks {
		q.Since = listwatch.State{}
	}
	f := &reflector.Reflector{
		Source: source, Policy: source.Policy(), Sink: sink, Query: q,
		PageSize: -1, Restart: sink.restart,
	}
	switch {
	case q.SendsInitialEvents():
	case q.Start == listwatch.StartAt:
		f.Resume = reflector.ResumePoint{Synced: true, Version: q.Version}
	default:
		// A watch without a start version could not be resumed before its first event, so list
		// one object to learn a version.
		page, err := source.List(ctx, listwatch.Query{
			Selection: listwatch.Selection{Namespace: q.Namespace, Name: q.Name}, Limit: 1,
		})
		if err != nil {
			return nil, err
		}
		f.Resume = reflector.ResumePoint{Synced: true, Confirmed: true, Version: page.Version}
	}
	return f, f.Open(ctx)
}
