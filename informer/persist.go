package informer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/govalue"
	"github.com/listwatch/listwatch/internal/hooks"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/savedcopy"
)

// A persister reads and writes the copy of an informer. A nil persister does nothing.
//
// The informer does not show the copy before it has received the difference.
type persister[T any] struct {
	savedcopy.Keeper
	informer *Informer[T]

	// Owned by the Reflector.
	loaded []*Item[T] // what the file had, until the first state is complete
	since  listwatch.State

	mu sync.Mutex
	// Guarded by mu.
	received string // the ID of the newest state; empty while the Sink receives it
	stored   string // the ID of the state in the local store, or empty if that is not known
}

// newPersister returns a persister that has read the file, or nil if i keeps no copy.
func newPersister[T any](i *Informer[T]) *persister[T] {
	if i.Persist.Path == "" {
		return nil
	}
	keeper := savedcopy.Keeper{File: i.Persist, Source: i.Source, Trace: hooks.Fill(i.Trace).Saved}
	p := &persister[T]{Keeper: keeper, informer: i}
	h, err := p.Read(p.header(), func(line []byte) error {
		item, err := decodeSaved[T](line)
		p.loaded = append(p.loaded, item)
		return err
	})
	if err != nil {
		p.loaded = nil
		return p
	}
	p.since = h.State
	return p
}

// header describes the copies that p can use.
func (p *persister[T]) header() savedcopy.Header {
	_, encoding := p.Encoding()
	return savedcopy.Header{
		Selection:      p.informer.Selection.Key(),
		Representation: p.Form + " " + govalue.TypeText(reflect.TypeFor[T]()) + encoding,
	}
}

// merge applies a difference to the state in the file, and returns the new state. ok is false if
// there is no such state, because the difference applies to a later one.
func (p *persister[T]) merge(items []*Item[T], gone []listwatch.Key) (state []*Item[T], ok bool) {
	if p == nil || p.since == (listwatch.State{}) {
		return nil, false
	}
	byKey := make(map[listwatch.Key]*Item[T], len(p.loaded)+len(items))
	for _, i := range p.loaded {
		byKey[i.Key] = i
	}
	for _, key := range gone {
		delete(byKey, key)
	}
	for _, i := range items {
		byKey[i.Key] = i
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b *Item[T]) int { return a.Key.Compare(b.Key) }), true
}

// begin records that the Sink begins to receive a new state. Until the local store has that state,
// nothing is saved, because the store has objects of two states.
func (p *persister[T]) begin() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.received, p.stored = "", ""
	}
}

// complete records that the Sink has received the state with the given ID. The local store may have
// had that state before.
func (p *persister[T]) complete(id string) {
	if p == nil {
		return
	}
	p.loaded, p.since = nil, listwatch.State{}
	p.mu.Lock()
	p.received = id
	p.mu.Unlock()
	p.informer.publishProgress()
}

// drained records that the local store has everything that the Sink has received.
func (p *persister[T]) drained() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stored = p.received
	}
}

// lost removes the file if err means that the informer may not read the collection.
func (p *persister[T]) lost(err error) {
	if p != nil && p.Lost(err) {
		p.begin()
	}
}

// save writes the file, unless the local store is not complete or has not advanced.
func (p *persister[T]) save() {
	if p == nil {
		return
	}
	snapshot, id := p.current()
	h := p.header()
	h.State, h.Objects = listwatch.State{Version: snapshot.Version(), ID: id}, snapshot.Len()
	if !p.IsNew(h.State) {
		return
	}
	p.Save(h, savedcopy.Lines(snapshot.Items(), p.encode), func() bool {
		_, id := p.current() // access may have been lost meanwhile
		return id != ""
	})
}

// current returns the local store and the ID of its state. The ID is empty if it is not known.
func (p *persister[T]) current() (*Snapshot[T], string) {
	p.informer.state.mu.Lock() // no state is stored between the two
	defer p.informer.state.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.informer.Snapshot(), p.stored
}

// encode returns the line of an item. A value is saved as JSON, also if the objects are not JSON.
func (p *persister[T]) encode(i *Item[T]) (line []byte, err error) {
	s := listwatch.Object{Key: i.Key, Version: i.Version, Labels: i.Labels()}
	if o, ok := any(i.Value).(*listwatch.Object); ok {
		s.Fields, s.Data = o.Fields, o.Data
		encoding, _ := p.Encoding()
		return savedcopy.EncodeObject(&s, encoding)
	}
	if s.Data, err = rawjson.Encode(i.Value); err != nil {
		return nil, fmt.Errorf("encode %s: %w", i.Key, err)
	}
	return savedcopy.EncodeObject(&s, nil)
}

func decodeSaved[T any](line []byte) (*Item[T], error) {
	o, err := savedcopy.DecodeObject(line)
	if err != nil {
		return nil, err
	}
	if value, ok := any(o).(T); ok {
		return newItem(o, value), nil
	}
	value, err := govalue.Decode[T](o.Data)
	if err != nil {
		return nil, err
	}
	return newItem(o, value), nil
}
