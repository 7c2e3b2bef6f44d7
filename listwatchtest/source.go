// Package listwatchtest has a Source whose faults a test controls: it cuts watches, drops its
// history, refuses requests and responds late. So a test can verify without a network what a
// program does when its connection breaks.
//
//	flags := memory.New[Flag]()          // the test writes here
//	source := listwatchtest.New(flags)   // the program reads here
//	source.Cut(nil)                      // the program resumes
//	source.Expire()                      // the program lists again
//
// The Source needs no goroutine and measures time with the time package only, so it works in a
// bubble of testing/synctest, where backoff takes no time. The package imports nothing but
// listwatch and the standard library.
package listwatchtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A Source passes lists and watches on to another Source, and adds the faults that a test
// requests. Without faults it has the guarantees of the other Source. Like the watchers of a
// client.Remote, its watchers are not [listwatch.Poller]s, so a watch server over it sends only
// the bookmarks of the other Source. A Source is safe for concurrent use.
type Source struct {
	mu sync.Mutex
	// Guarded by mu.
	source   listwatch.Source
	failure  error // the error of every request; nil if requests succeed
	delay    time.Duration
	floor    listwatch.Version // the oldest version that a watch may resume from
	expiries int               // the number of calls of Expire
	open     map[*watcher]struct{}
	lists    []listwatch.Query
	watches  []listwatch.Query
}

// New returns a Source that passes everything on to s, which is usually a store in memory
// (store/memory).
func New(s listwatch.Source) *Source {
	return &Source{source: s, open: make(map[*watcher]struct{})}
}

// Cut ends all open watches with err. With [io.EOF] they end cleanly, as when a server shuts down.
// If err is nil, they end with an error of code Unavailable, like a connection that broke. Events
// that were not read yet are lost to these watches; a client that resumes receives them.
//
// New watches succeed. To keep clients disconnected, call [Source.Fail] before Cut.
func (s *Source) Cut(err error) {
	if err == nil {
		err = &listwatch.Error{Code: listwatch.Unavailable, Message: "the watch was cut by the test"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.open {
		w.end(err)
	}
	clear(s.open)
}

// Expire drops the history before the newest version. All open watches end with an error of code
// Expired. From now on the Source refuses, with that code, to resume a watch from an older version,
// to list an older version exactly, and to continue an earlier list. Expire returns an error if it
// cannot list the other Source to find the newest version.
func (s *Source) Expire() error {
	s.mu.Lock()
	source := s.source
	s.mu.Unlock()
	newest, err := source.List(context.Background(), listwatch.Query{Limit: 1})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.floor = newest.Version
	s.expiries++
	s.mu.Unlock()
	s.Cut(expired(newest.Version))
	return nil
}

func expired(floor listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.Expired,
		Message: fmt.Sprintf("the test dropped the history before version %d: list again", floor),
	}
}

// Fail makes every list and watch that starts from now on fail with err. If err is nil, they
// succeed again. Open watches are not affected; see [Source.Cut].
func (s *Source) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// Delay makes each list, each start of a watch, and each Next of a watcher take longer by d from
// now on. Zero or a negative value removes the delay. [Source.Cut] ends a Next that is delayed.
func (s *Source) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Replace makes another Source serve all requests from now on, as after a restart with other
// data. Open watches still read from the previous Source until [Source.Cut] ends them. Watches
// can then resume from every version that the new Source retains, even after an earlier Expire.
func (s *Source) Replace(by listwatch.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source, s.floor = by, 0
}

// Lists returns the queries of all lists so far, including failed lists.
func (s *Source) Lists() []listwatch.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lists)
}

// Watches returns the queries of all watches so far, including failed watches.
func (s *Source) Watches() []listwatch.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watches)
}

// OpenWatches returns the number of watches that are open: neither closed nor cut.
func (s *Source) OpenWatches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Describe implements [listwatch.Describer].
func (s *Source) Describe() listwatch.Description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return listwatch.Describe(s.source)
}
