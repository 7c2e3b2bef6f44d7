package readcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/persist"
)

const (
	// statusInterval is the interval at which the status line is updated, and probeInterval
	// the interval of requests for the server's newest version.
	statusInterval = 500 * time.Millisecond
	probeInterval  = 2 * time.Second
)

// An informerView shows the local store of an informer.
type informerView struct {
	*informer.Informer[*listwatch.Object]
	remote *client.Remote
	start  time.Time

	added, updated, deleted, relists, differences atomic.Int64
	// firstListDuration is in nanoseconds. It is zero until the first list is complete.
	firstListDuration atomic.Int64
	probe             atomic.Pointer[versionProbe]
}

// A versionProbe is a version that the server reported as its newest.
type versionProbe struct {
	version    listwatch.Version
	receivedAt time.Time
	// lag is the time from receivedAt until the store had the version. It is negative before that.
	lag time.Duration
}

// watchInformer runs an informer and shows its store until ctx ends.
func (o *watchOptions) watchInformer(ctx context.Context, t *collection, remote *client.Remote,
	out, notes io.Writer,
) error {
	m := &informerView{
		remote: remote, start: time.Now(),
		Informer: &informer.Informer[*listwatch.Object]{
			Source: remote, Selection: t.query.Selection, Conflate: t.query.Conflate,
			Persist: persist.File{Path: o.persist},
			Decode: func(o *listwatch.Object) (*listwatch.Object, error) {
				return o, nil
			},
		},
	}
	refusal := make(chan error, 1)
	m.Trace = &informer.Trace{
		Received: func(s informer.StateChange) {
			if s.Since != 0 {
				m.differences.Add(1)
			} else {
				m.relists.Add(1)
			}
		},
		Lost: func(err error, wait time.Duration, _ bool) {
			if m.Version() == 0 && isPermanent(err) {
				select {
				case refusal <- err:
				default:
				}
			}
			printLoss(notes, err, wait)
		},
	}
	m.Handle(informer.Handler[*listwatch.Object]{
		OnAdd: func(_ *listwatch.Object, initial bool) {
			if !initial {
				m.added.Add(1)
			}
		},
		OnUpdate: func(_, _ *listwatch.Object) { m.updated.Add(1) },
		OnDelete: func(informer.Deleted[*listwatch.Object]) { m.deleted.Add(1) },
	}, nil)

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Run(ctx)
	}()
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		m.probeVersions(ctx)
	}()
	defer func() {
		cancel()
		<-ended
		<-probed
	}()
	return m.show(ctx, out, refusal, o.exitAfter)
}

// isPermanent reports whether err would occur again in a retry.
func isPermanent(err error) bool {
	switch listwatch.CodeOf(err) {
	case listwatch.Invalid, listwatch.NotFound, listwatch.Unauthorized, listwatch.Forbidden, listwatch.Unsupported:
		return true
	}
	return false
}

// probeVersions repeatedly requests the newest version, and measures the time until the
// store reaches it.
func (i *informerView) probeVersions(ctx context.Context) {
	if i.WaitForVersion(ctx, 0) != nil {
		return
	}
	i.firstListDuration.Store(int64(time.Since(i.start)))
	for {
		page, err := i.remote.List(ctx, listwatch.Query{
			Selection: listwatch.Selection{Namespace: i.Selection.Namespace, Name: i.Selection.Name}, Limit: 1,
		})
		if err == nil {
			p := versionProbe{version: page.Version, receivedAt: time.Now(), lag: -1}
			i.probe.Store(&p)
			if i.WaitForVersion(ctx, page.Version) != nil {
				return
			}
			reached := p
			reached.lag = time.Since(p.receivedAt)
			i.probe.Store(&reached)
		}
		select {
		case <-time.After(probeInterval):
		case <-ctx.Done():
			return
		}
	}
}

// show writes the status whenever it changes. On a terminal it overwrites the line,
// otherwise it adds a line. It returns after maxLines lines; zero means no limit.
func (i *informerView) show(ctx context.Context, out io.Writer, refusal <-chan error, maxLines int) error {
	width := cli.Terminal(out)
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	last := ""
	for lines := 0; maxLines == 0 || lines < maxLines; {
		if line := i.statusLine(); line != last {
			last = line
			lines++
			if err := cli.WriteStatus(out, line, width); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case err := <-refusal:
			return remote.WithAdvice(err)
		case <-ctx.Done():
			if width > 0 {
				fmt.Fprintln(out)
			}
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return ctx.Err()
		}
	}
	return nil
}

// statusLine describes the state of the store.
func (i *informerView) statusLine() string {
	took := time.Duration(i.firstListDuration.Load())
	if took == 0 {
		return "waiting for the first list"
	}
	return fmt.Sprintf("%d objects at version %d, %s; +%d ~%d -%d since the first list, which took %v; listed %d times, patched %d times",
		i.Len(), i.Version(), i.lagText(), i.added.Load(), i.updated.Load(), i.deleted.Load(),
		took.Round(time.Millisecond), i.relists.Load(), i.differences.Load())
}

// lagText describes the lag of the store.
func (i *informerView) lagText() string {
	p := i.probe.Load()
	switch {
	case p == nil:
		return "lag unknown"
	case p.lag < 0 && time.Since(p.receivedAt) < statusInterval:
		return "lag under " + statusInterval.String()
	case p.lag < 0:
		// The store may have passed p.version meanwhile.
		behind := p.version - min(i.Version(), p.version)
		return fmt.Sprintf("up to %d versions behind for %v", behind, time.Since(p.receivedAt).Truncate(time.Second))
	case p.lag < 10*time.Millisecond:
		return "lag under 10ms"
	}
	return "lag " + p.lag.Round(10*time.Millisecond).String()
}
