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

func (t *watchCounts) add(o watchCounts) {
	t.ownCellEvents += o.ownCellEvents
	t.cuts += o.cuts
	t.cutsInEvent += o.cutsInEvent
	t.replayedEvents += o.replayedEvents
	t.replayingResumes += o.replayingResumes
	t.timedOutDials += o.timedOutDials
}

// A session in the watcher's own cell is cut after a random number of bytes: at least
// ownCellMinBytes, and less than ownCellMinBytes plus ownCellExtraBytes (minEvents*80). At most
// minCuts+1 such sessions are cut, so together they read less than minEvents*320 bytes. All cuts
// occur, because the history is longer: even a compressed event takes more than 400 bytes.
const ownCellMinBytes, ownCellExtraBytes = minEvents * 20, minEvents * 60

// newMatrixWatcher returns a watcher with a random plan: sessions in its own cell and in other
// cells alternate, and all except the last one are cut. The cuts come so early that all of them
// occur before the history ends.
func newMatrixWatcher(m *matrix, number int, home cell) *matrixWatcher {
	w := &matrixWatcher{home: home, number: number, selector: selectors[number%len(selectors)], matrix: m, rand: newRandom(firstWatcherActor + uint64(number))}
	for range minCuts + w.rand.IntN(2) {
		w.sessions = append(w.sessions,
			watchSession{cell: home, cutAfter: ownCellMinBytes + w.rand.IntN(ownCellExtraBytes), reset: w.rand.IntN(2) == 0},
			watchSession{cell: w.otherCell(), onOtherCell: true, cutAfter: otherCellMinBytes + w.rand.IntN(otherCellExtraBytes), reset: w.rand.IntN(2) == 0})
	}
	w.sessions = append(w.sessions, watchSession{cell: home})
	return w
}

// otherCell returns a random cell of another transport.
func (w *matrixWatcher) otherCell() cell {
	for {
		c := w.matrix.cells[w.rand.IntN(len(w.matrix.cells))]
		if c.client.transport != w.home.client.transport {
			return c
		}
	}
}

// run watches the history to its end.
func (w *matrixWatcher) run(ctx context.Context) error {
	defer w.matrix.throttle.finished(w.number)
	for i, l := range w.sessions {
		done, err := w.runSession(ctx, l)
		switch {
		case err != nil:
			return fmt.Errorf("session %d, %s, after version %d: %w", i, l.cell, w.lastVersion, err)
		case done && i < len(w.sessions)-1:
			return fmt.Errorf("the history was too short: it ended in session %d of %d", i, len(w.sessions))
		}
	}
	return nil
}

// runSession runs one session. done reports whether the session has received the sentinel;
// if not, it was cut off.
func (w *matrixWatcher) runSession(ctx context.Context, l watchSession) (done bool, err error) {
	s := w.matrix.servers[serverKey{l.cell.server.name, l.cell.tls}]
	cut := &cutter{after: l.cutAfter, reset: l.reset}
	client := l.cell.client.newClient(transport.Network{Dial: cut.dial, TLS: s.ClientTLS})
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	resumed, head := w.counts.cuts > 0, w.matrix.log.newestVersion()
	r := w.request(s, l.cell.framing)
	l.cell.addTo(r)
	receiver, err := w.dial(ctx, client, r)
	if err != nil && cut.fired.Load() && listwatch.CodeOf(err) == listwatch.Unavailable {
		// The client of net/http reads ahead, so it may reach the cut before Dial returns.
		w.counts.cuts++
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer receiver.Close()
	w.matrix.markOpened(w.number)
	if err := l.cell.verifyResponse(receiver.Header()); err != nil {
		return false, err
	}
	before, size := w.counts.replayedEvents, 0
	for {
		e, err := receiver.Receive()
		if err != nil {
			return false, w.verifyCut(cut, err)
		}
		size += len(e.Object)
		done, err := w.verifyEvent(ctx, l, e)
		if err != nil {
			return false, err
		}
		if done {
			return true, l.verifyCompression(size, cut.bytesRead.Load())
		}
		if resumed && w.lastVersion <= head {
			if w.counts.replayedEvents == before {
				w.counts.replayingResumes++
			}
			w.counts.replayedEvents++
		}
	}
}

// dial is like c.Dial, but repeats a dial that has timed out, and counts the repetitions. The
// clients limit the time for the TLS handshake and the response headers, and no option changes
// that. The many watchers that connect at the same time exceed these limits on a busy machine.
func (w *matrixWatcher) dial(ctx context.Context, c transport.Client, r *transport.Request) (transport.Receiver, error) {
	for {
		receiver, err := c.Dial(ctx, r)
		var timeout interface{ Timeout() bool }
		if err == nil || ctx.Err() != nil || !errors.As(err, &timeout) || !timeout.Timeout() {
			return receiver, err
		}
		w.counts.timedOutDials++
	}
}

// verifyCompression returns an error if a compressed session did not read fewer bytes than its
// events contain. It does not check sessions whose events have at most 256 KiB.
func (l watchSession) verifyCompression(events int, read int64) error {
	if l.cell.isCompressed() && events > 256<<10 && read >= int64(events) {
		return fmt.Errorf("compressed events of %d bytes took %d bytes on the wire", events, read)
	}
	return nil
}

// request returns a request for the events after lastVersion. With the SSE framing, the request
// resumes like an EventSource, by Last-Event-ID.
func (w *matrixWatcher) request(s *servertest.Server, framer framing.Framer) *transport.Request {
	header := make(http.Header)
	q := url.Values{"labelSelector": {w.selector.text}}
	if framer == framing.Framer(framing.SSE{}) && w.lastVersion != 0 {
		header.Set("Last-Event-ID", w.lastVersion.String())
	} else {
		q.Set("resourceVersion", max(w.lastVersion, w.matrix.start).String())
	}
	return &transport.Request{URL: s.WatchURL("/things", q.Encode()), Header: header, Framings: []framing.Framer{framer}}
}

// verifyEvent verifies one event. done reports whether the event belongs to the sentinel.
func (w *matrixWatcher) verifyEvent(ctx context.Context, l watchSession, e framing.WatchEvent) (done bool, err error) {
	if e.Type == framing.TypeError {
		return false, fmt.Errorf("got an ERROR event: %w", listwatch.ParseStatus(e.Object))
	}
	a := receivedEvent{e.Type, findVersion(e.Object), e.Object}
	if a.version == 0 {
		return false, fmt.Errorf("got %s event without a version: %s", e.Type, excerptAt(e.Object, 0))
	}
	if _, hasID := l.cell.framing.(framing.SSE); hasID && e.Version != a.version {
		return false, fmt.Errorf("got SSE id %d for version %d", e.Version, a.version)
	}
	write, err := w.matrix.log.await(ctx, a.version)
	if err != nil {
		return false, err
	}
	if err := write.verify(a, w.selector, l.cell.isCBOR()); err != nil {
		return false, err
	}
	w.lastVersion = a.version
	w.versions = append(w.versions, a.version)
	if !l.onOtherCell {
		w.counts.ownCellEvents++
	}
	if len(w.versions)%64 == 0 {
		w.matrix.throttle.advance(w.number, a.version)
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
func (w *matrixWatcher) verifyCut(cut *cutter, err error) error {
	if !cut.fired.Load() {
		return fmt.Errorf("the stream ended without a cut: %w", err)
	}
	if errors.Is(err, io.EOF) || listwatch.CodeOf(err) != listwatch.Unavailable {
		return fmt.Errorf("the cut (reset %v, after %d bytes) returned %w, want an error of code Unavailable and not io.EOF", cut.reset, cut.after, err)
	}
	w.counts.cuts++
	if errors.Is(err, io.ErrUnexpectedEOF) {
		w.counts.cutsInEvent++
	}
	return nil
}
