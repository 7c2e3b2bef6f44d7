package client

import (
	"context"

	"github.com/listwatch/listwatch"
)

// Watch sends the first request and returns its error, if any. ctx bounds only that request.
// The Watcher recovers from later failures; the package comment lists the errors that it
// returns.
//
// If the server refuses to send initial events (KEP-3157), the Remote lists the objects instead,
// and the watch begins at the version of the list. The reader sees no difference. For the next
// hour, every Watch of the Remote that needs the state begins with such a list.
//
// A Watch without initial events and with Start Newest or Any first lists one object and
// starts at the version of that list, because a watch without a version could not be
// resumed.
//
// If Start is At and the server has another epoch, the error is [listwatch.Expired]. The
// Remote assumes that the version belongs to the newest epoch that it has seen.
func (r *Remote) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkQuery(q, true); err != nil {
		return nil, err
	}
	u, err := r.parseURL()
	if err != nil {
		return nil, watchError(err)
	}
	r.init()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := newWatcher(cancel)
	f := newFollower(life, r, q, u, w)
	stop := context.AfterFunc(ctx, cancel)
	err = f.open()
	if !stop() && err == nil {
		_ = f.reflector.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, watchError(err)
	}
	go f.run() // ends after Close of the watcher; Close does not wait for it
	return w, nil
}

func watchError(err error) error {
	e := listwatch.AsError(err)
	if e.Op == "" {
		c := *e
		c.Op = "watch"
		return &c
	}
	return e
}
