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

// A leg is one session of a watcher: over a cell, until it is cut.
type watchSession struct {
	cell        cell
	onOtherCell bool
	cutAfter    int // bytes; zero: never
	reset       bool
}

// A follower is one logical watcher. Its home is a cell of the matrix; each time it is cut off it resumes elsewhere, is cut off
// there, and comes back.
type matrixWatcher struct {
	// Immutable after construction.
	home     cell
	number   int
	selector selector
	sessions []watchSession
	matrix   *matrix
	rand     *rand.Rand

	// Owned by run.
	lastVersion listwatch.Version   // the newest that was received whole
	versions    []listwatch.Version // of all events
	counts      watchCounts
}

// tally counts what a run was worth.
type watchCounts struct {
	ownCellEvents    int // events that came over the cell itself
	cuts             int // sessions that were cut off
	cutsInEvent      int // of them, how many within an event
	replayedEvents   int // events after a resume that were history when it began
	replayingResumes int // resumes that had such events
}

func (t *watchCounts) add(o watchCounts) {
	t.ownCellEvents += o.ownCellEvents
	t.cuts += o.cuts
	t.cutsInEvent += o.cutsInEvent
	t.replayedEvents += o.replayedEvents
	t.replayingResumes += o.replayingResumes
}

// Sessions at home end after leastAtHome bytes and at random up to moreAtHome besides: soon enough for a compressed history to be longer than all
// of them. An event takes more than 400 bytes then.
const ownCellMinBytes, ownCellExtraBytes = 32 << 10, minEvents*80 - 32<<10

// newFollower plans where a follower goes. Most sessions end long before the history does, so all cuts happen.
func newMatrixWatcher(m *matrix, number int, home cell) *matrixWatcher {
	f := &matrixWatcher{home: home, number: number, selector: selectors[number%len(selectors)], matrix: m, rand: newRandom(firstWatcherActor + uint64(number))}
	for range minCuts + f.rand.IntN(2) {
		f.sessions = append(f.sessions,
			watchSession{cell: home, cutAfter: ownCellMinBytes + f.rand.IntN(ownCellExtraBytes), reset: f.rand.IntN(2) == 0},
			watchSession{cell: f.otherCell(), onOtherCell: true, cutAfter: otherCellMinBytes + f.rand.IntN(otherCellExtraBytes), reset: f.rand.IntN(2) == 0})
	}
	f.sessions = append(f.sessions, watchSession{cell: home})
	return f
}

// elsewhere returns a cell of another transport.
func (f *matrixWatcher) otherCell() cell {
	for {
		c := f.matrix.cells[f.rand.IntN(len(f.matrix.cells))]
		if c.client.transport != f.home.client.transport {
			return c
		}
	}
}

// run follows the history to its end.
func (f *matrixWatcher) run(ctx context.Context) error {
	defer f.matrix.throttle.finished(f.number)
	for i, l := range f.sessions {
		done, err := f.runSession(ctx, l)
		switch {
		case err != nil:
			return fmt.Errorf("session %d, %s, after version %d: %w", i, l.cell, f.lastVersion, err)
		case done && i < len(f.sessions)-1:
			return fmt.Errorf("the history was too short: the end came in session %d of %d", i, len(f.sessions))
		}
	}
	return nil
}

// follow is one session. done is true where it saw the last event there is, otherwise it was cut off.
func (f *matrixWatcher) runSession(ctx context.Context, l watchSession) (done bool, err error) {
	s := f.matrix.servers[serverKey{l.cell.server.name, l.cell.tls}]
	cut := &cutter{after: l.cutAfter, reset: l.reset}
	client := l.cell.client.newClient(transport.Network{Dial: cut.dial, TLS: s.ClientTLS})
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	resumed, head := f.counts.cuts > 0, f.matrix.log.newestVersion()
	r := f.request(s, l.cell.framing)
	l.cell.addTo(r)
	receiver, err := client.Dial(ctx, r)
	if err != nil {
		return false, err
	}
	defer receiver.Close()
	f.matrix.markOpened(f.number)
	if err := l.cell.verifyResponse(receiver.Header()); err != nil {
		return false, err
	}
	before, size := f.counts.replayedEvents, 0
	for {
		e, err := receiver.Receive()
		if err != nil {
			return false, f.verifyCut(cut, err)
		}
		size += len(e.Object)
		done, err := f.verifyEvent(ctx, l, e)
		if err != nil {
			return false, err
		}
		if done {
			return true, l.verifyCompression(size, cut.bytesRead.Load())
		}
		if resumed && f.lastVersion <= head {
			if f.counts.replayedEvents == before {
				f.counts.replayingResumes++
			}
			f.counts.replayedEvents++
		}
	}
}

// checkSize says whether a session that asked for compression was smaller for it. What is before the events is left out of account where there
// are many.
func (l watchSession) verifyCompression(events int, read int64) error {
	if l.cell.isCompressed() && events > 1<<20 && read >= int64(events) {
		return fmt.Errorf("events of %d bytes took %d on the wire", events, read)
	}
	return nil
}

// request asks for what comes after the last version, as an EventSource does where the framing is its own and it is not the first
// time.
func (f *matrixWatcher) request(s *servertest.Server, framer framing.Framer) *transport.Request {
	header := make(http.Header)
	q := url.Values{"labelSelector": {f.selector.text}}
	if framer == framing.Framer(framing.SSE{}) && f.lastVersion != 0 {
		header.Set("Last-Event-ID", f.lastVersion.String())
	} else {
		q.Set("resourceVersion", max(f.lastVersion, f.matrix.start).String())
	}
	return &transport.Request{URL: s.WatchURL("/things", q.Encode()), Header: header, Framings: []framing.Framer{framer}}
}

// take judges one event. done is true where it is the last.
func (f *matrixWatcher) verifyEvent(ctx context.Context, l watchSession, e framing.WatchEvent) (done bool, err error) {
	if e.Type == framing.TypeError {
		return false, fmt.Errorf("got an ERROR event: %w", listwatch.ParseStatus(e.Object))
	}
	a := receivedEvent{e.Type, findVersion(e.Object), e.Object}
	if a.version == 0 {
		return false, fmt.Errorf("got a %s without a version: %s", e.Type, excerptAt(e.Object, 0))
	}
	if _, tells := l.cell.framing.(framing.SSE); tells && e.Version != a.version {
		return false, fmt.Errorf("got id %d with version %d", e.Version, a.version)
	}
	w, err := f.matrix.log.await(ctx, a.version)
	if err != nil {
		return false, err
	}
	if err := w.verify(a, f.selector, l.cell.isCBOR()); err != nil {
		return false, err
	}
	f.lastVersion = a.version
	f.versions = append(f.versions, a.version)
	if !l.onOtherCell {
		f.counts.ownCellEvents++
	}
	if len(f.versions)%64 == 0 {
		f.matrix.throttle.advance(f.number, a.version)
	}
	return w.key == sentinel, nil
}

// versionIn finds the resourceVersion in an object by its looks alone; zero: there is none.
func findVersion(object []byte) listwatch.Version {
	_, rest, _ := bytes.Cut(object, []byte(`"resourceVersion":"`))
	digits, _, _ := bytes.Cut(rest, []byte(`"`))
	v, err := listwatch.ParseVersion(string(digits))
	if err != nil {
		return 0
	}
	return v
}

// endOfCut checks that a cut looks like one, and counts it.
func (f *matrixWatcher) verifyCut(cut *cutter, err error) error {
	if !cut.fired.Load() {
		return fmt.Errorf("the stream ended, and nobody had cut it: %w", err)
	}
	if errors.Is(err, io.EOF) || listwatch.CodeOf(err) != listwatch.Unavailable {
		return fmt.Errorf("a connection that was cut (reset %v, after %d bytes) was reported as %w; want code Unavailable, and no clean end", cut.reset, cut.after, err)
	}
	f.counts.cuts++
	if errors.Is(err, io.ErrUnexpectedEOF) {
		f.counts.cutsInEvent++
	}
	return nil
}
