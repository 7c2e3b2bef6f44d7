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
)

const (
	// statusPeriod is how often the line is looked at, probePeriod how often the server is asked for its newest version.
	statusInterval = 500 * time.Millisecond
	probeInterval  = 2 * time.Second
)

// A mirror is a local store that is shown as it follows the server.
type informerView struct {
	*informer.Informer[*listwatch.Object]
	remote *client.Remote
	query  listwatch.Query
	start  time.Time

	added, updated, deleted, relists atomic.Int64
	firstListDuration                atomic.Int64 // nanoseconds until the first state was there
	probe                            atomic.Pointer[versionProbe]
}

// A probe is the newest version that the server has told, which the store may not have yet.
type versionProbe struct {
	version    listwatch.Version
	receivedAt time.Time
	lag        time.Duration // until the store had it; negative: it does not have it
}

// mirror follows the collection with an informer and shows its store, until ctx ends.
func (o *watchOptions) watchInformer(ctx context.Context, t *collection, remote *client.Remote, out, notes io.Writer) error {
	m := &informerView{remote: remote, query: t.query, start: time.Now(), Informer: &informer.Informer[*listwatch.Object]{
		Source: remote, Query: t.query, Decode: func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil },
	}}
	refusal := make(chan error, 1)
	m.Trace = &informer.Trace{
		Replaced: func(int, listwatch.Version, time.Duration) { m.relists.Add(1) },
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

// isFinal reports whether trying again is of no use to somebody at a terminal.
func isPermanent(err error) bool {
	switch listwatch.CodeOf(err) {
	case listwatch.Invalid, listwatch.NotFound, listwatch.Unauthorized, listwatch.Forbidden, listwatch.Unsupported:
		return true
	}
	return false
}

// probes asks for the newest version from time to time, and how long the store takes to have it.
func (m *informerView) probeVersions(ctx context.Context) {
	if m.WaitForVersion(ctx, 0) != nil {
		return
	}
	m.firstListDuration.Store(int64(time.Since(m.start)))
	for {
		page, err := m.remote.List(ctx, listwatch.Query{Namespace: m.query.Namespace, Name: m.query.Name, Limit: 1})
		if err == nil {
			p := versionProbe{version: page.Version, receivedAt: time.Now(), lag: -1}
			m.probe.Store(&p)
			if m.WaitForVersion(ctx, page.Version) != nil {
				return
			}
			reached := p
			reached.lag = time.Since(p.receivedAt)
			m.probe.Store(&reached)
		}
		select {
		case <-time.After(probeInterval):
		case <-ctx.Done():
			return
		}
	}
}

// show writes the state of the store whenever it has changed: over and over the same line on a terminal, else a line each. It ends after so
// many lines; 0: never.
func (m *informerView) show(ctx context.Context, out io.Writer, refusal <-chan error, most int) error {
	width, _ := cli.Terminal(out)
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	last := ""
	for lines := 0; most == 0 || lines < most; {
		if line := m.statusLine(); line != last {
			last = line
			lines++
			if err := writeStatus(out, line, width); err != nil {
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

// writeStatus writes line over the one before where out is a terminal of that width; zero: it is none.
func writeStatus(out io.Writer, line string, width int) error {
	if width == 0 {
		_, err := fmt.Fprintln(out, line)
		return err
	}
	if len(line) >= width {
		line = line[:width-1]
	}
	_, err := fmt.Fprintf(out, "\r\x1b[K%s", line)
	return err
}

// line says how the store is.
func (m *informerView) statusLine() string {
	took := time.Duration(m.firstListDuration.Load())
	if took == 0 {
		return "waiting for the first state"
	}
	return fmt.Sprintf("%d objects at version %d, %s; +%d ~%d -%d since the first state, which took %v; listed %d times",
		m.Len(), m.Version(), m.lagText(), m.added.Load(), m.updated.Load(), m.deleted.Load(), took.Round(time.Millisecond), m.relists.Load())
}

// lag says how far the store is behind.
func (m *informerView) lagText() string {
	p := m.probe.Load()
	switch {
	case p == nil:
		return "lag not known"
	case p.lag < 0 && time.Since(p.receivedAt) < statusInterval:
		return "lag under " + statusInterval.String()
	case p.lag < 0:
		behind := p.version - min(m.Version(), p.version) // it may have come there just now
		return fmt.Sprintf("at most %d versions behind for %v", behind, time.Since(p.receivedAt).Truncate(time.Second))
	case p.lag < 10*time.Millisecond:
		return "lag under 10ms"
	}
	return "lag " + p.lag.Round(10*time.Millisecond).String()
}
