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
	"github.com/listwatch/listwatch/transport"
)

// A leg is one session of a watcher: over a cell, until it is cut.
type leg struct {
	cell  cell
	away  bool
	cut   int // bytes; zero: never
	reset bool
}

// A follower is one logical watcher. Its home is a cell of the matrix; each time it is cut off it resumes elsewhere, is cut off
// there, and comes back.
type follower struct {
	// Immutable after construction.
	home     cell
	number   int
	selector selector
	legs     []leg
	matrix   *matrix
	rand     *rand.Rand

	// Owned by run.
	last     listwatch.Version   // the newest that was received whole
	versions []listwatch.Version // of all events
	tally    tally
}

// tally counts what a run was worth.
type tally struct {
	atHome   int // events that came over the cell itself
	cuts     int // sessions that were cut off
	torn     int // of them, how many within an event
	replayed int // events after a resume that were history when it began
	replays  int // resumes that had such events
}

func (t *tally) add(o tally) {
	t.atHome += o.atHome
	t.cuts += o.cuts
	t.torn += o.torn
	t.replayed += o.replayed
	t.replays += o.replays
}

// Sessions at home end after leastAtHome bytes and at random up to moreAtHome besides: soon enough for a compressed history to be longer than all
// of them. An event takes more than 400 bytes then.
const leastAtHome, moreAtHome = 32 << 10, minEvents*80 - 32<<10

// newFollower plans where a follower goes. Most sessions end long before the history does, so all cuts happen.
func newFollower(m *matrix, number int, home cell) *follower {
	f := &follower{home: home, number: number, selector: selectors[number%len(selectors)], matrix: m, rand: randomFor(firstFollower + uint64(number))}
	for range minCuts + f.rand.IntN(2) {
		f.legs = append(f.legs,
			leg{cell: home, cut: leastAtHome + f.rand.IntN(moreAtHome), reset: f.rand.IntN(2) == 0},
			leg{cell: f.elsewhere(), away: true, cut: leastElsewhere + f.rand.IntN(moreElsewhere), reset: f.rand.IntN(2) == 0})
	}
	f.legs = append(f.legs, leg{cell: home})
	return f
}

// elsewhere returns a cell of another transport.
func (f *follower) elsewhere() cell {
	for {
		c := f.matrix.cells[f.rand.IntN(len(f.matrix.cells))]
		if c.client.transport != f.home.client.transport {
			return c
		}
	}
}

// run follows the history to its end.
func (f *follower) run(ctx context.Context) error {
	defer f.matrix.pace.finished(f.number)
	for i, l := range f.legs {
		done, err := f.follow(ctx, l)
		switch {
		case err != nil:
			return fmt.Errorf("session %d, %s, after version %d: %w", i, l.cell, f.last, err)
		case done && i < len(f.legs)-1:
			return fmt.Errorf("the history was too short: the end came in session %d of %d", i, len(f.legs))
		}
	}
	return nil
}

// follow is one session. done is true where it saw the last event there is, otherwise it was cut off.
func (f *follower) follow(ctx context.Context, l leg) (done bool, err error) {
	s := f.matrix.sites[siteKey{l.cell.server.name, l.cell.tls}]
	cut := &cutter{after: l.cut, reset: l.reset}
	client := l.cell.client.over(transport.Network{Dial: cut.dial, TLS: s.tls})
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	resumed, head := f.tally.cuts > 0, f.matrix.ledger.head()
	r := f.request(s, l.cell.framing)
	l.cell.ask(r)
	receiver, err := client.Dial(ctx, r)
	if err != nil {
		return false, err
	}
	defer receiver.Close()
	f.matrix.opened(f.number)
	if err := l.cell.checkAnswer(receiver.Header()); err != nil {
		return false, err
	}
	before, size := f.tally.replayed, 0
	for {
		e, err := receiver.Receive()
		if err != nil {
			return false, f.endOfCut(cut, err)
		}
		size += len(e.Object)
		done, err := f.take(ctx, l, e)
		if err != nil {
			return false, err
		}
		if done {
			return true, l.checkSize(size, cut.read.Load())
		}
		if resumed && f.last <= head {
			if f.tally.replayed == before {
				f.tally.replays++
			}
			f.tally.replayed++
		}
	}
}

// checkSize says whether a session that asked for compression was smaller for it. What is before the events is left out of account where there
// are many.
func (l leg) checkSize(events int, read int64) error {
	if l.cell.isCompressed() && events > 1<<20 && read >= int64(events) {
		return fmt.Errorf("events of %d bytes took %d on the wire", events, read)
	}
	return nil
}

// request asks for what comes after the last version, as an EventSource does where the framing is its own and it is not the first
// time.
func (f *follower) request(s *site, framer framing.Framer) *transport.Request {
	u, header := s.url, make(http.Header)
	q := url.Values{"watch": {"1"}, "labelSelector": {f.selector.text}}
	if framer == framing.Framer(framing.SSE{}) && f.last != 0 {
		header.Set("Last-Event-ID", f.last.String())
	} else {
		q.Set("resourceVersion", max(f.last, f.matrix.start).String())
	}
	u.RawQuery = q.Encode()
	return &transport.Request{URL: &u, Header: header, Framings: []framing.Framer{framer}}
}

// take judges one event. done is true where it is the last.
func (f *follower) take(ctx context.Context, l leg, e framing.WatchEvent) (done bool, err error) {
	if e.Type == framing.TypeError {
		return false, fmt.Errorf("got an ERROR event: %w", listwatch.ParseStatus(e.Object))
	}
	a := arrival{e.Type, versionIn(e.Object), e.Object}
	if a.version == 0 {
		return false, fmt.Errorf("got a %s without a version: %s", e.Type, excerptAt(e.Object, 0))
	}
	if _, tells := l.cell.framing.(framing.SSE); tells && e.Version != a.version {
		return false, fmt.Errorf("got id %d with version %d", e.Version, a.version)
	}
	w, err := f.matrix.ledger.at(ctx, a.version)
	if err != nil {
		return false, err
	}
	if err := w.check(a, f.selector, l.cell.isCBOR()); err != nil {
		return false, err
	}
	f.last = a.version
	f.versions = append(f.versions, a.version)
	if !l.away {
		f.tally.atHome++
	}
	if len(f.versions)%64 == 0 {
		f.matrix.pace.reached(f.number, a.version)
	}
	return w.key == sentinel, nil
}

// versionIn finds the resourceVersion in an object by its looks alone; zero: there is none.
func versionIn(object []byte) listwatch.Version {
	_, rest, _ := bytes.Cut(object, []byte(`"resourceVersion":"`))
	digits, _, _ := bytes.Cut(rest, []byte(`"`))
	v, err := listwatch.ParseVersion(string(digits))
	if err != nil {
		return 0
	}
	return v
}

// endOfCut checks that a cut looks like one, and counts it.
func (f *follower) endOfCut(cut *cutter, err error) error {
	if !cut.fired.Load() {
		return fmt.Errorf("the stream ended, and nobody had cut it: %w", err)
	}
	if errors.Is(err, io.EOF) || listwatch.CodeOf(err) != listwatch.Unavailable {
		return fmt.Errorf("a connection that was cut (reset %v, after %d bytes) was reported as %w; want code Unavailable, and no clean end", cut.reset, cut.after, err)
	}
	f.tally.cuts++
	if errors.Is(err, io.ErrUnexpectedEOF) {
		f.tally.torn++
	}
	return nil
}
