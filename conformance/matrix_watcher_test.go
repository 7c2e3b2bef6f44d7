package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
)

// A watchSession is one session of a watcher in one cell. Every session of a watcher, except the
// last one, ends with a cut.
type watchSession struct {
	cell        cell
	onOtherCell bool
	cutAfter    int // the number of bytes; zero means that the session is not cut
	reset       bool
}

// A matrixWatcher watches mostly in its own cell. Whenever it is cut off there, it resumes
// in another cell, is cut off again, and returns to its own cell.
type matrixWatcher struct {
	// Immutable after construction.
	home     cell
	number   int
	selector selector
	sessions []watchSession
	matrix   *matrix
	rand     *rand.Rand

	// Owned by run.
	lastVersion listwatch.Version   // version of the last complete event
	versions    []listwatch.Version // versions of all events
	counts      watchCounts
}

// watchCounts counts events, cuts and resumes of watchers.
type watchCounts struct {
	ownCellEvents    int // events in the watcher's own cell
	cuts             int // sessions that were cut off
	cutsInEvent      int // cuts in the middle of an event
	replayedEvents   int // events received after a resume but written before the resume
	replayingResumes int // resumes followed by replayed events
	timedOutDials    int // dials that were repeated
}

func (w *watchCounts) add(o watchCounts) {
	w.ownCellEvents += o.ownCellEvents
	w.cuts += o.cuts
	w.cutsInEvent += o.cutsInEvent
	w.replayedEvents += o.replayedEvents
	w.replayingResumes += o.replayingResumes
	w.timedOutDials += o.timedOutDials
}

// A session in the watcher's own cell is cut after a random number of bytes: at least
// ownCellMinBytes, and less than ownCellMinBytes+ownCellExtraBytes, which is minEvents*80. At most
// minCuts+1 such sessions are cut, so together they read less than minEvents*240 bytes. The history
// is longer, because even a compressed event takes more than 400 bytes. Therefore all cuts occur.
const ownCellMinBytes, ownCellExtraBytes = minEvents * 20, minEvents * 60

// newMatrixWatcher returns a watcher with a random plan: sessions in its own cell and in other
// cells alternate, and all except the last one are cut. The cuts come so early that all of them
// occur before the history ends.
func newMatrixWatcher(m *matrix, number int, home cell) *matrixWatcher {
	w := &matrixWatcher{
		home: home, number: number, selector: selectors[number%len(selectors)], matrix: m,
		rand: newRandom(firstWatcherActor + uint64(number)),
	}
	for range minCuts + w.rand.IntN(2) {
		w.sessions = append(w.sessions,
			watchSession{
				cell: home, cutAfter: ownCellMinBytes + w.rand.IntN(ownCellExtraBytes), reset: w.rand.IntN(2) == 0,
			},
			watchSession{
				cell: w.otherCell(), onOtherCell: true, cutAfter: otherCellMinBytes + w.rand.IntN(otherCellExtraBytes),
				reset: w.rand.IntN(2) == 0,
			})
	}
	w.sessions = append(w.sessions, watchSession{cell: home})
	return w
}

// otherCell returns a random cell of another transport.
func (m *matrixWatcher) otherCell() cell {
	for {
		c := m.matrix.cells[m.rand.IntN(len(m.matrix.cells))]
		if c.client.transport != m.home.client.transport {
			return c
		}
	}
}

// run watches the history to its end.
func (m *matrixWatcher) run(ctx context.Context) error {
	defer m.matrix.throttle.finished(m.number)
	for i, l := range m.sessions {
		done, err := m.runSession(ctx, l)
		switch {
		case err != nil:
			return fmt.Errorf("session %d, %s, after version %d: %w", i, l.cell, m.lastVersion, err)
		case done && i < len(m.sessions)-1:
			return fmt.Errorf("the history was too short: it ended in session %d of %d", i, len(m.sessions))
		}
	}
	return nil
}

// runSession runs one session. done reports whether the session has received the sentinel;
// if not, it was cut off.
func (m *matrixWatcher) runSession(ctx context.Context, l watchSession) (done bool, err error) {
	s := m.matrix.servers[serverKey{l.cell.server.name, l.cell.tls}]
	cut := &cutter{after: l.cutAfter, reset: l.reset}
	client := l.cell.client.newClient(transport.Network{Dial: cut.dial, TLS: s.ClientTLS})
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	resumed, head := m.counts.cuts > 0, m.matrix.log.newestVersion()
	r := m.request(s, l.cell.framing)
	l.cell.addTo(r)
	receiver, err := m.dial(ctx, client, r)
	if err != nil && cut.fired.Load() && listwatch.CodeOf(err) == listwatch.Unavailable {
		// The client of net/http reads ahead, so it may reach the cut before Dial returns.
		m.counts.cuts++
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer receiver.Close()
	m.matrix.markOpened(m.number)
	if err := l.cell.verifyResponse(receiver.Header()); err != nil {
		return false, err
	}
	before, size := m.counts.replayedEvents, 0
	for {
		e, err := receiver.Receive()
		if err != nil {
			return false, m.verifyCut(cut, err)
		}
		size += len(e.Object)
		done, err := m.verifyEvent(ctx, l, e)
		if err != nil {
			return false, err
		}
		if done {
			return true, l.verifyCompression(size, cut.bytesRead.Load())
		}
		if resumed && m.lastVersion <= head {
			if m.counts.replayedEvents == before {
				m.counts.replayingResumes++
			}
			m.counts.replayedEvents++
		}
	}
}

// dial is like c.Dial, but repeats a dial that has timed out, and counts the repetitions. The
// clients limit the time for the TLS handshake and the response headers, and have no option to
// change that. On a busy machine, the many watchers that connect at the same time exceed these
// limits.
func (m *matrixWatcher) dial(
	ctx context.Context, c transport.Client, r *transport.Request,
) (transport.Receiver, error) {
	for {
		receiver, err := c.Dial(ctx, r)
		var timeout interface{ Timeout() bool }
		if err == nil || ctx.Err() != nil || !errors.As(err, &timeout) || !timeout.Timeout() {
			return receiver, err
		}
		m.counts.timedOutDials++
	}
}

// verifyCompression returns an error if a compressed session read at least as many bytes as its
// objects contain. It ignores sessions with at most 256 KiB of objects.
func (w watchSession) verifyCompression(events int, read int64) error {
	if w.cell.isCompressed() && events > 256<<10 && read >= int64(events) {
		return fmt.Errorf("compressed events of %d bytes took %d bytes on the wire", events, read)
	}
	return nil
}

// request returns a request for the events after lastVersion. With the SSE framing, the request
// resumes like an EventSource, by Last-Event-ID.
func (m *matrixWatcher) request(s *servertest.Server, framer framing.Framer) *transport.Request {
	header := make(http.Header)
	q := url.Values{"labelSelector": {m.selector.text}}
	if framer == framing.Framer(framing.SSE{}) && m.lastVersion != 0 {
		header.Set("Last-Event-ID", m.lastVersion.String())
	} else {
		q.Set("resourceVersion", max(m.lastVersion, m.matrix.start).String())
	}
	return &transport.Request{
		URL: s.WatchURL("/things", q.Encode()), Header: header, Framings: []framing.Framer{framer},
	}
}

// verifyEvent verifies one event. done reports whether the event belongs to the sentinel.
func (m *matrixWatcher) verifyEvent(ctx context.Context, l watchSession, e framing.WatchEvent) (done bool, err error) {
	if e.Type == framing.TypeError {
		return false, fmt.Errorf("got an ERROR event: %w", kubestatus.Parse(e.Object))
	}
	a := receivedEvent{e.Type, findVersion(e.Object), e.Object}
	if a.version == 0 {
		return false, fmt.Errorf("got %s event without a version: %s", e.Type, excerptAt(e.Object, 0))
	}
	if _, hasID := l.cell.framing.(framing.SSE); hasID && e.Version != a.version {
		return false, fmt.Errorf("got SSE id %d for version %d", e.Version, a.version)
	}
	write, err := m.matrix.log.await(ctx, a.version)
	if err != nil {
		return false, err
	}
	if err := write.verify(a, m.selector, l.cell.isCBOR()); err != nil {
		return false, err
	}
	m.lastVersion = a.version
	m.versions = append(m.versions, a.version)
	if !l.onOtherCell {
		m.counts.ownCellEvents++
	}
	if len(m.versions)%64 == 0 {
		m.matrix.throttle.advance(m.number, a.version)
	}
	return write.key == sentinel, nil
}

// findVersion finds the resourceVersion of an object without parsing it. It returns zero if
// there is none.
func findVersion(object []byte) listwatch.Version {
	_, rest, _ := bytes.Cut(object, []byte(`"resourceVersion":"`))
	digits, _, _ := bytes.Cut(rest, []byte(`"`))
	v, err := listwatch.ParseVersion(string(digits))
	if err != nil {
		return 0
	}
	return v
}

// verifyCut verifies that err is the error of a cut, and counts the cut.
func (m *matrixWatcher) verifyCut(cut *cutter, err error) error {
	if !cut.fired.Load() {
		return fmt.Errorf("the stream ended without a cut: %w", err)
	}
	if errors.Is(err, io.EOF) || listwatch.CodeOf(err) != listwatch.Unavailable {
		return fmt.Errorf("the cut (reset %v, after %d bytes) returned %w, want an error of code Unavailable and not "+
			"io.EOF", cut.reset, cut.after, err)
	}
	m.counts.cuts++
	if errors.Is(err, io.ErrUnexpectedEOF) {
		m.counts.cutsInEvent++
	}
	return nil
}
