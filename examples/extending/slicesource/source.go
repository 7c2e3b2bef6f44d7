// Package slicesource is a [listwatch.Source] over a slice of writes. It keeps every guarantee of a
// Source as simply as possible: each list replays the slice, and a watcher is a position in the
// slice. Use it for collections that are small or are written only once.
package slicesource

import (
	"context"
	"sort"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Write is a create if Old is nil, a delete if New is nil, otherwise an update.
type Write struct {
	Version  listwatch.Version
	Old, New *listwatch.Object
}

// A Source keeps the writes of a collection. It is safe for concurrent use.
type Source struct {
	// Immutable after construction.
	description listwatch.Description

	mu sync.Mutex
	// Guarded by mu.
	writes []Write
	floor  listwatch.Version // the oldest version that a watch can start from
	newest listwatch.Version
	wakers map[*watcher]func() // the watchers that wait for the next write
}

var (
	_ listwatch.Source    = (*Source)(nil)
	_ listwatch.Describer = (*Source)(nil)
)

// New returns an empty Source whose version is start, which must not be zero. After every restart d
// must have a new Epoch, unless the same writes are appended again.
func New(d listwatch.Description, start listwatch.Version) *Source {
	return &Source{description: d, floor: start, newest: start, wakers: make(map[*watcher]func())}
}

// Append adds a write. Its version must be greater than the version of the last write.
func (s *Source) Append(w Write) {
	s.mu.Lock()
	s.writes = append(s.writes, w)
	s.newest = w.Version
	wakers := s.wakers
	s.wakers = make(map[*watcher]func())
	s.mu.Unlock()
	if len(wakers) > 0 {
		go func() { // in a goroutine, because the caller may hold locks
			for _, wake := range wakers {
				wake()
			}
		}()
	}
}

// Compact replaces the writes up to v with creations of the objects that existed at v. After that,
// lists and watches of older versions fail with Expired.
func (s *Source) Compact(v listwatch.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v = min(v, s.newest)
	if v <= s.floor {
		return
	}
	var kept []Write
	for _, o := range s.objects(listwatch.Selection{}, v) {
		kept = append(kept, Write{Version: o.Version, New: o})
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].Version < kept[j].Version })
	s.writes = append(kept, s.writes[s.after(v):]...)
	s.floor = v
}

// Describe implements [listwatch.Describer].
func (s *Source) Describe() listwatch.Description { return s.description }

// after returns the index of the first write after v. The caller must hold mu.
func (s *Source) after(v listwatch.Version) int {
	return sort.Search(len(s.writes), func(i int) bool { return s.writes[i].Version > v })
}

// objects returns the selected objects at v, in key order. The caller must hold mu.
func (s *Source) objects(selection listwatch.Selection, v listwatch.Version) []*listwatch.Object {
	state := make(map[listwatch.Key]*listwatch.Object)
	for _, w := range s.writes[:s.after(v)] {
		if w.New == nil {
			delete(state, w.Old.Key)
		} else {
			state[w.New.Key] = w.New
		}
	}
	var objects []*listwatch.Object
	for _, o := range state {
		if selection.Matches(o) {
			objects = append(objects, selection.Projection.Reduce(o))
		}
	}
	sort.Slice(objects, func(i, j int) bool { return objects[i].Key.Compare(objects[j].Key) < 0 })
	return objects
}

// List implements [listwatch.Source].
func (s *Source) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	if err := q.Fields.Check(s.description.Fields); err != nil {
		return listwatch.Page{}, err
	}
	from, err := parseToken(q.Continue)
	if err != nil {
		return listwatch.Page{}, err
	}
	if err := s.waitFor(ctx, q.Version); err != nil {
		return listwatch.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.newest
	switch {
	case from.Version > 0:
		v = from.Version
	case q.Start == listwatch.StartAt && q.Match == listwatch.MatchExact:
		v = q.Version
	}
	if v < s.floor || v > s.newest {
		return listwatch.Page{}, expiredList(v, s.floor, from)
	}
	return page(s.objects(q.Selection, v), v, q.Limit, from), nil
}

// waitFor waits until the Source has reached v, as a watch from v with initial events does.
func (s *Source) waitFor(ctx context.Context, v listwatch.Version) error {
	if v == 0 {
		return nil
	}
	w, err := s.Watch(
		ctx, listwatch.Query{
			Start: listwatch.StartAt, Version: v, InitialEvents: listwatch.InitialEventsYes, Bookmarks: true,
		})
	if err == nil {
		defer w.Close()
		_, err = w.Next(ctx, make([]listwatch.Event, 1))
	}
	return err
}
