package informer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/savedcopy"
)

// Persist keeps a copy of the local store in a file, so that an [Informer] that starts again
// requests only what has changed. The zero value keeps no copy.
//
// The informer does not show the copy before it has received the difference. If the file is
// missing or damaged, or is a copy of another server, selection or type, or if the server does not
// know what has changed, the informer receives the whole state. The file is removed when the
// server answers that the informer may not read the collection (401 or 403).
type Persist struct {
	// Path is the path of the file, which belongs to one informer. Only the user of the process
	// can read it. If empty, there is no file.
	Path string
	// Form must be changed when Decode or Transform of the informer change, because the file holds
	// their results as JSON. A change of the type of the values is noticed without it.
	Form string
	// Interval is the minimum time between two saves. If zero, one minute is used. A negative value
	// saves only at the end of Run.
	Interval time.Duration
	// Secrets permits copies of collections of the kind Secret.
	Secrets bool
}

// A persister reads and writes the copy of an informer. A nil persister does nothing.
type persister[T any] struct {
	Persist
	informer *Informer[T]

	// Owned by the Reflector.
	loaded []*Item[T] // what the file had, until the first state is complete
	since  listwatch.State

	saved listwatch.Version // the version of the copy; owned by save

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
	p := &persister[T]{Persist: i.Persist, informer: i}
	h, err := savedcopy.Read(p.Path, p.header(), func(line []byte) error {
		item, err := decodeSaved[T](line)
		p.loaded = append(p.loaded, item)
		return err
	})
	if err != nil {
		p.loaded = nil
		if !errors.Is(err, fs.ErrNotExist) {
			i.Trace.saved(Saved{Err: err})
		}
	}
	p.since, p.saved = h.State, h.State.Version
	return p
}

// header describes the copies that p can use.
func (p *persister[T]) header() savedcopy.Header {
	return savedcopy.Header{
		Selection:      selectionKey(p.informer.Query),
		Representation: p.Form + " " + typeText(reflect.TypeFor[T](), nil),
	}
}

// firstSince returns the state in the file, or zero.
func (p *persister[T]) firstSince() (since listwatch.State) {
	if p != nil {
		since = p.since
	}
	return since
}

// merge returns the state that consists of the file and a difference to it. ok is false if the
// difference is one to a later state.
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
	state = make([]*Item[T], 0, len(byKey))
	for _, i := range byKey {
		state = append(state, i)
	}
	slices.SortFunc(state, func(a, b *Item[T]) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return state, true
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

// complete records that the Sink has received the state with the given ID.
func (p *persister[T]) complete(id string) {
	if p != nil {
		p.loaded, p.since = nil, listwatch.State{}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.received = id
	}
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
	if code := listwatch.CodeOf(err); p != nil && (code == listwatch.Unauthorized || code == listwatch.Forbidden) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.received, p.stored = "", ""
		p.trace(Saved{Err: savedcopy.Remove(p.Path)})
	}
}

// run saves the local store until ctx ends.
func (p *persister[T]) run(ctx context.Context) {
	if p == nil || p.Interval < 0 {
		return
	}
	tick := time.NewTicker(cmp.Or(p.Interval, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.save()
		case <-ctx.Done():
			return
		}
	}
}

// save writes the file, unless the local store is not complete or has not advanced.
func (p *persister[T]) save() {
	if p == nil {
		return
	}
	begun := time.Now()
	snapshot, id := p.current()
	if id == "" || snapshot.Version() == 0 || snapshot.Version() == p.saved {
		return
	}
	p.saved = snapshot.Version() // also after an error: try again when there is something new
	if d := listwatch.Describe(p.informer.Source); d.Kind == "Secret" && !p.Secrets {
		p.trace(Saved{Err: errors.Join(errSecrets, savedcopy.Remove(p.Path))})
		return
	}
	h := p.header()
	h.State, h.Objects = listwatch.State{Version: snapshot.Version(), ID: id}, snapshot.Len()
	var failure error
	err := savedcopy.Write(p.Path, h, encodeAll(snapshot, &failure))
	if failure != nil {
		err = failure
	}
	if _, now := p.current(); now == "" { // access may have been lost meanwhile
		err = errors.Join(err, savedcopy.Remove(p.Path))
	}
	p.trace(Saved{Objects: h.Objects, Version: snapshot.Version(), Took: time.Since(begun), Err: err})
}

// current returns the local store and the ID of its state. The ID is empty if it is not known.
func (p *persister[T]) current() (*Snapshot[T], string) {
	p.informer.state.mu.Lock() // no state is stored between the two
	defer p.informer.state.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.informer.Snapshot(), p.stored
}

var errSecrets = &listwatch.Error{
	Code: listwatch.Invalid, Op: "save a copy", Message: "Secrets are not saved unless Persist.Secrets is true",
}

func (p *persister[T]) trace(s Saved) { p.informer.Trace.saved(s) }
