package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
)

const (
	// statusPeriod is how often the line is looked at, probePeriod how often the server is asked for its newest version.
	statusPeriod = 500 * time.Millisecond
	probePeriod  = 2 * time.Second
)

// A mirror is a local store that is shown as it follows the server.
type mirror struct {
	*informer.Informer[*listwatch.Object]
	remote *client.Remote
	query  listwatch.Query
	begun  time.Time

	added, updated, deleted, relists atomic.Int64
	took                             atomic.Int64 // nanoseconds until the first state was there
	probe                            atomic.Pointer[probe]
}

// A probe is the newest version that the server has told, which the store may not have yet.
type probe struct {
	version listwatch.Version
	told    time.Time
	lag     time.Duration // until the store had it; negative: it does not have it
}

// mirror follows the collection with an informer and shows its store, until ctx ends.
func (o *watchOptions) mirror(ctx context.Context, t *target, remote *client.Remote, out, notes io.Writer) error {
	m := &mirror{remote: remote, query: t.query, begun: time.Now(), Informer: &informer.Informer[*listwatch.Object]{
		Source: remote, Query: t.query, Decode: func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil },
	}}
	refusal := make(chan error, 1)
	m.Trace = &informer.Trace{
		Replaced: func(int, listwatch.Version, time.Duration) { m.relists.Add(1) },
		Lost: func(err error, wait time.Duration, _ bool) {
			if m.Version() == 0 && isFinal(err) {
				select {
				case refusal <- err:
				default:
				}
			}
			noteLoss(notes, err, wait)
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
		m.probes(ctx)
	}()
	defer func() {
		cancel()
		<-ended
		<-probed
	}()
	return m.show(ctx, out, refusal, o.exitAfter)
}

// isFinal reports whether trying again is of no use to somebody at a terminal.
func isFinal(err error) bool {
	switch listwatch.CodeOf(err) {
	case listwatch.Invalid, listwatch.NotFound, listwatch.Unauthorized, listwatch.Forbidden, listwatch.Unsupported:
		return true
	}
	return false
}

// probes asks for the newest version from time to time, and how long the store takes to have it.
func (m *mirror) probes(ctx context.Context) {
	if m.WaitForVersion(ctx, 0) != nil {
		return
	}
	m.took.Store(int64(time.Since(m.begun)))
	for {
		page, err := m.remote.List(ctx, listwatch.Query{Namespace: m.query.Namespace, Name: m.query.Name, Limit: 1})
		if err == nil {
			p := probe{version: page.Version, told: time.Now(), lag: -1}
			m.probe.Store(&p)
			if m.WaitForVersion(ctx, page.Version) != nil {
				return
			}
			reached := p
			reached.lag = time.Since(p.told)
			m.probe.Store(&reached)
		}
		select {
		case <-time.After(probePeriod):
		case <-ctx.Done():
			return
		}
	}
}

// show writes the state of the store whenever it has changed: over and over the same line on a terminal, else a line each. It ends after so
// many lines; 0: never.
func (m *mirror) show(ctx context.Context, out io.Writer, refusal <-chan error, most int) error {
	width, _ := terminal(out)
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	last := ""
	for lines := 0; most == 0 || lines < most; {
		if line := m.line(); line != last {
			last = line
			lines++
			if err := writeStatus(out, line, width); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case err := <-refusal:
			return withAdvice(err)
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
func (m *mirror) line() string {
	took := time.Duration(m.took.Load())
	if took == 0 {
		return "waiting for the first state"
	}
	return fmt.Sprintf("%d objects at version %d, %s; +%d ~%d -%d since the first state, which took %v; listed %d times",
		m.Len(), m.Version(), m.lag(), m.added.Load(), m.updated.Load(), m.deleted.Load(), took.Round(time.Millisecond), m.relists.Load())
}

// lag says how far the store is behind.
func (m *mirror) lag() string {
	p := m.probe.Load()
	switch {
	case p == nil:
		return "lag not known"
	case p.lag < 0 && time.Since(p.told) < statusPeriod:
		return "lag under " + statusPeriod.String()
	case p.lag < 0:
		behind := p.version - min(m.Version(), p.version) // it may have come there just now
		return fmt.Sprintf("at most %d versions behind for %v", behind, time.Since(p.told).Truncate(time.Second))
	case p.lag < 10*time.Millisecond:
		return "lag under 10ms"
	}
	return "lag " + p.lag.Round(10*time.Millisecond).String()
}
