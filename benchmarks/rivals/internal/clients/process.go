// Package clients opens watches on a rival and counts their events, in a process of its own.
package clients

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Received describes the events that the watchers have received.
type Received struct {
	// OK is false if events are missing.
	OK bool
	// P50, P99 and Max are latencies, from the write until a watcher has the event.
	P50, P99, Max time.Duration
	// SinceOpen is the time since the last watches were opened.
	SinceOpen time.Duration
	// Bytes is the number of bytes that all reading watches have received in total.
	Bytes int64
}

// Stalled describes the result of a watcher that did not read for a while.
type Stalled struct {
	// Events is the number of events that the watcher has received in total.
	Events int
	// Closed reports that the server has ended the watch.
	Closed bool
}

// Load is the main function of a load process. It executes the commands on its standard input until
// end of file, and answers each with a line of JSON: true, a Received or a Stalled.
//
//	open N     open N watches that read, and answer true
//	wait N     wait until these watches have received N events in total, and answer Received
//	since      open a watch and read its initial state; all later watches request the difference
//	           to that state; answer true
//	stall      open a watch, read its initial state, stop reading, and answer true
//	resume N   read from the stalled watch until no more events arrive, and answer Stalled;
//	           N is the number of events if none are missing
func Load(t Target, in io.Reader, out io.Writer) error {
	o, err := newOpener(t)
	if err != nil {
		return err
	}
	l := &load{opener: o, target: t, counter: newCounter()}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer, err := l.execute(lines.Text())
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if err := json.NewEncoder(out).Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

type load struct {
	opener
	target  Target
	counter *counter
	opened  time.Time
	stalled *stalledWatch
}

// A stalledWatch receives the first events of a watch and then does not read until it is resumed.
type stalledWatch struct {
	events   chan int      // the number of events of each block that was read
	closed   chan struct{} // closed when the server has ended the watch
	resumed  chan struct{} // closed by resume
	received int           // owned by load
}

func (l *load) execute(line string) (answer any, err error) {
	var command string
	var n int
	if _, err := fmt.Sscan(line+" 0", &command, &n); err != nil {
		return nil, err
	}
	switch command {
	case "open":
		l.opened = time.Now()
		return true, l.openAll(n)
	case "wait":
		return l.wait(n), nil
	case "since":
		return true, l.since()
	case "stall":
		return true, l.stall()
	case "resume":
		return l.resume(n), nil
	}
	return nil, fmt.Errorf("unknown command %q", command)
}

func (l *load) openAll(n int) error {
	var group sync.WaitGroup
	errs := make(chan error, n)
	slots := make(chan struct{}, 64)
	for range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			r, err := l.open()
			if err != nil {
				errs <- err
				return
			}
			go read(countingReader{r, &l.counter.bytes}, l.counter.add)
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func (l *load) wait(total int) Received {
	s, ok := l.counter.await(total)
	since := time.Since(l.opened)
	if len(s) == 0 {
		return Received{OK: ok, SinceOpen: since, Bytes: l.counter.bytes.Load()}
	}
	slices.Sort(s)
	return Received{ok, s[len(s)/2], s[len(s)*99/100], s[len(s)-1], since, l.counter.bytes.Load()}
}

// stall opens the stalled watch. It awaits the initial state, because some servers respond before
// they subscribe the watch to events.
func (l *load) stall() error {
	r, err := l.open()
	if err != nil {
		return err
	}
	w := &stalledWatch{events: make(chan int), closed: make(chan struct{}), resumed: make(chan struct{})}
	l.stalled = w
	go func() { // ends with the process at the latest
		defer close(w.closed)
		read(r, func(s []time.Duration) {
			w.events <- len(s)
			<-w.resumed
		})
	}()
	select {
	case w.received = <-w.events:
		return nil
	case <-w.closed:
		return errors.New("the server ended the watch before its initial state")
	case <-time.After(patience):
		return fmt.Errorf("no initial state within %v", patience)
	}
}

// settled is the time without events after which resume stops reading, if the stalled watch has
// received all events. If events are missing, resume waits for patience instead.
const settled = 2 * time.Second

func (l *load) resume(all int) Stalled {
	w := l.stalled
	close(w.resumed)
	result := Stalled{Events: w.received}
	for {
		quiet := settled
		if result.Events < all {
			quiet = patience
		}
		select {
		case n := <-w.events:
			result.Events += n
		case <-w.closed:
			result.Closed = true
			return result
		case <-time.After(quiet):
			return result
		}
	}
}
