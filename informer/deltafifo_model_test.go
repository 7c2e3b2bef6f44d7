package informer

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch"
)

// thing is the object type of these tests.
type thing struct {
	listwatch.Metadata `json:"metadata"`

	Node string `json:"node,omitempty"`
}

func thingAt(key listwatch.Key, v listwatch.Version, node string) *Item[*thing] {
	t := &thing{
		Metadata: listwatch.Metadata{Namespace: key.Namespace, Name: key.Name, ResourceVersion: v.String()},
		Node:     node,
	}
	return &Item[*thing]{Key: key, Version: v, Value: t}
}

func keyOf(name string) listwatch.Key { return listwatch.Key{Namespace: "ns", Name: name} }

var testKeys = []listwatch.Key{keyOf("a"), keyOf("b"), keyOf("c"), keyOf("d")}

// A database models the source from the point of view of its writer. It determines the
// expected content of the queue and the store.
type database struct {
	// log holds the changes of the current epoch. The first change has version 1.
	log   []Delta[*thing]
	now   map[listwatch.Key]listwatch.Version
	epoch int
}

func (s *database) version() listwatch.Version { return listwatch.Version(len(s.log)) }

func (s *database) write(key listwatch.Key, exists bool) {
	v := s.version() + 1
	d := Delta[*thing]{Type: DeltaAdded, Item: thingAt(key, v, strconv.Itoa(s.epoch))}
	switch _, ok := s.now[key]; {
	case !exists && !ok:
		return
	case !exists:
		d.Type = DeltaDeleted
		delete(s.now, key)
	default:
		if ok {
			d.Type = DeltaUpdated
		}
		s.now[key] = v
	}
	s.log = append(s.log, d)
}

func (s *database) list() []*Item[*thing] {
	var items []*Item[*thing]
	for _, key := range testKeys {
		if v, ok := s.now[key]; ok {
			items = append(items, thingAt(key, v, strconv.Itoa(s.epoch)))
		}
	}
	return items
}

// restart starts a new epoch, which contains only the objects whose keys are in keep. Versions
// start at 1 again.
func (s *database) restart(keep []listwatch.Key) {
	s.epoch++
	s.log, s.now = nil, make(map[listwatch.Key]listwatch.Version)
	for _, k := range keep {
		s.write(k, true)
	}
}

// mayBe reports whether the object with the given key has version v in some state of s that is
// not older than since. If v is zero, it reports whether the object is missing in such a state.
func (s *database) mayBe(key listwatch.Key, v, since listwatch.Version) bool {
	var state listwatch.Version
	for i, d := range s.log {
		if at := listwatch.Version(i + 1); at > since && state == v {
			return true
		}
		if d.Item.Key == key {
			state = d.Item.Version
			if d.Type == DeltaDeleted {
				state = 0
			}
		}
	}
	return state == v
}

// A modelRun applies random operations to a database and a DeltaFIFO, and checks the deltas
// that the queue returns.
type modelRun struct {
	*rapid.T
	database
	fifo  DeltaFIFO[*thing]
	store Indexer[*thing]
	// delivered is the number of log entries that were delivered.
	delivered int
	// view is the state of a consumer that knows only the deltas.
	view map[listwatch.Key]listwatch.Version
	// last holds the newest version of each key that was handled in this epoch.
	last   map[listwatch.Key]listwatch.Version
	listed bool
	// first is the version of the first list of this epoch.
	first listwatch.Version
	claim listwatch.Version
	// storeRefusedObject is true while the store lacks an object that it has refused. Until a
	// list delivers that object again, the queue's version does not apply to the store.
	storeRefusedObject bool
}

var errRefused = errors.New("refused")

func (m *modelRun) anyKey() listwatch.Key { return rapid.SampledFrom(testKeys).Draw(m.T, "key") }

func (m *modelRun) writeSome() { m.write(m.anyKey(), rapid.IntRange(0, 2).Draw(m.T, "exists") > 0) }

func (m *modelRun) deliver() {
	n := rapid.IntRange(0, len(m.log)-m.delivered).Draw(m.T, "deliver")
	batch := m.log[m.delivered : m.delivered+n]
	m.delivered += n
	if err := m.fifo.Apply(batch...); err != nil {
		m.Fatal(err)
	}
}

// repeat delivers events a second time, like a stream that resumes at an older version.
func (m *modelRun) repeat() {
	if err := m.fifo.Bookmark(listwatch.Version(m.delivered)); err != nil {
		m.Fatal(err)
	}
	back := rapid.IntRange(0, m.delivered).Draw(m.T, "back")
	before := m.fifo.Len()
	if err := m.fifo.Apply(m.log[m.delivered-back : m.delivered]...); err != nil {
		m.Fatal(err)
	}
	if m.fifo.Len() != before {
		m.Fatalf("repeating %d events changed the queue: %d keys, before %d", back, m.fifo.Len(), before)
	}
}

// relist delivers the newest state in place of the pending events.
func (m *modelRun) relist() {
	if err := m.fifo.Replace(m.list(), m.version()); err != nil {
		m.Fatal(err)
	}
	m.delivered = len(m.log)
	if !m.listed {
		m.listed, m.first = true, m.version()
	}
}

// patch delivers the difference to an earlier state in place of the pending events. Like the
// difference that a server sends, it may have changes that the queue has received, and keys that it
// does not know.
func (m *modelRun) patch() {
	if !m.listed {
		return
	}
	since := listwatch.Version(rapid.IntRange(0, m.delivered).Draw(m.T, "since"))
	var items []*Item[*thing]
	for _, i := range m.list() {
		if i.Version > since {
			items = append(items, i)
		}
	}
	var gone []listwatch.Key
	for _, d := range m.log[since:] {
		if _, exists := m.now[d.Item.Key]; !exists {
			gone = append(gone, d.Item.Key)
		}
	}
	if err := m.fifo.Patch(items, gone, m.version()); err != nil {
		m.Fatal(err)
	}
	m.delivered = len(m.log)
}

func (m *modelRun) newEpoch() {
	if m.delivered == 0 {
		return
	}
	before := m.delivered
	m.restart(rapid.SliceOfNDistinct(rapid.SampledFrom(testKeys), 0, 3, rapid.ID).Draw(m.T, "keep"))
	if len(m.log) >= before {
		m.restart(nil) // without a version lower than before, the new epoch would go unnoticed
	}
	m.last = make(map[listwatch.Key]listwatch.Version)
	m.first, m.claim = 0, 0
	m.relist()
}

func (m *modelRun) pop() {
	if m.fifo.Len() == 0 {
		return
	}
	err := m.fifo.Pop(context.Background(), func(d Deltas[*thing], _ bool) error {
		m.maybeInterfere("before the handler")
		if rapid.IntRange(0, 19).Draw(m.T, "refuse") == 0 {
			m.storeRefusedObject = true
			return errRefused
		}
		m.handleAll(d)
		m.maybeInterfere("after the handler")
		return nil
	})
	if errors.Is(err, errRefused) {
		m.relist() // required after the store has refused an object
	} else if err != nil {
		m.Fatal(err)
	}
}

// maybeInterfere performs a random operation while a key is being handled.
func (m *modelRun) maybeInterfere(when string) {
	switch rapid.IntRange(0, 9).Draw(m.T, when) {
	case 0:
		m.writeSome()
		m.deliver()
	case 1:
		m.writeSome()
		m.relist()
	case 2:
		m.newEpoch()
	case 3:
		m.fifo.Resync()
	case 4:
		m.writeSome()
		m.patch()
	}
	m.check(m.T)
}

func (m *modelRun) handleAll(d Deltas[*thing]) {
	if d.Len() < 1 || d.Len() > 2 || d.Len() == 2 && d.At(0).Type != DeltaDeleted {
		m.Fatalf("invalid deltas of %s: %v", d.Key, d)
	}
	for delta := range d.All() {
		m.handle(d.Key, delta)
		v, last := delta.Item.Version, m.last[d.Key]
		if delta.Item.Value.Node != strconv.Itoa(m.epoch) || delta.FinalStateUnknown {
			continue
		}
		if v < last || v == last && delta.Type != DeltaReplaced && delta.Type != DeltaSync {
			m.Fatalf("%s changes from version %d to %s at %d", d.Key, last, delta.Type, v)
		}
		m.last[d.Key] = v
	}
}

func (m *modelRun) handle(key listwatch.Key, d Delta[*thing]) {
	if d.Item.Key != key {
		m.Fatalf("the deltas of %s contain one of %s", key, d.Item.Key)
	}
	_, known := m.store.Item(key)
	switch d.Type {
	case DeltaAdded:
		if known {
			m.Fatalf("%s is reported as added but was known", key)
		}
	case DeltaUpdated, DeltaSync, DeltaDeleted:
		if !known && !m.storeRefusedObject {
			m.Fatalf("%s is reported as %s but was not known", key, d.Type)
		}
	}
	var err error
	if d.Type == DeltaDeleted {
		delete(m.view, key)
		err = m.store.Delete(key)
	} else {
		m.view[key] = d.Item.Version
		err = m.store.Put(d.Item)
	}
	if err != nil {
		m.Fatal(err)
	}
}

// check compares the queue and the store with the model.
func (m *modelRun) check(*rapid.T) {
	if n := m.fifo.Len(); n > len(testKeys) {
		m.Fatalf("%d keys are queued, but only %d exist", n, len(testKeys))
	}
	v := m.fifo.Version()
	if v < m.claim || v > m.version() {
		m.Fatalf("the version changes from %d to %d; the newest is %d", m.claim, v, m.version())
	}
	m.claim = v
	if m.fifo.HasSynced() {
		if !m.listed {
			m.Fatal("HasSynced() without a list")
		}
		v = max(v, m.first)
	}
	for _, key := range testKeys {
		have := m.view[key]
		if i, ok := m.store.Item(key); ok != (have > 0) || ok && i.Version != have {
			m.Fatalf("the store holds %v for %s, but the deltas reported version %d", i, key, have)
		}
		if v > 0 && !m.storeRefusedObject && !m.mayBe(key, have, v) {
			m.Fatalf("the queue reports version %d, but %s is at %d", v, key, have)
		}
	}
}

func TestFIFOAndStoreMatchModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &modelRun{T: rt, view: map[listwatch.Key]listwatch.Version{}, last: map[listwatch.Key]listwatch.Version{}}
		w.now = map[listwatch.Key]listwatch.Version{}
		w.fifo.KnownObjects = &w.store
		rt.Repeat(map[string]func(*rapid.T){
			"write":   func(*rapid.T) { w.writeSome() },
			"write 2": func(*rapid.T) { w.writeSome(); w.writeSome() },
			"deliver": func(*rapid.T) { w.deliver() },
			"repeat":  func(*rapid.T) { w.repeat() },
			"relist":  func(*rapid.T) { w.relist() },
			"patch":   func(*rapid.T) { w.patch() },
			"epoch":   func(*rapid.T) { w.newEpoch() },
			"sync":    func(*rapid.T) { w.fifo.Sync(w.anyKey(), w.anyKey()) },
			"pop":     func(*rapid.T) { w.pop() },
			"pop 2":   func(*rapid.T) { w.pop(); w.pop() },
			"": func(t *rapid.T) {
				w.storeRefusedObject = w.storeRefusedObject && w.fifo.Len() > 0
				w.check(t)
			},
		})
		w.settle()
	})
}

// settle delivers the remaining events and pops all keys.
func (m *modelRun) settle() {
	if err := m.fifo.Apply(m.log[m.delivered:]...); err != nil {
		m.Fatal(err)
	}
	m.delivered = len(m.log)
	for m.fifo.Len() > 0 {
		err := m.fifo.Pop(context.Background(), func(d Deltas[*thing], _ bool) error { m.handleAll(d); return nil })
		if err != nil {
			m.Fatal(err)
		}
		m.check(m.T)
	}
	if !maps.Equal(m.view, m.now) {
		m.Fatalf("the store ends with %v, want the newest state %v", m.view, m.now)
	}
	if got := m.fifo.Version(); got != m.version() {
		m.Fatalf("after everything was handled the version is %d, want %d", got, m.version())
	}
	if m.fifo.HasSynced() != m.listed {
		m.Fatalf("HasSynced() = %t, listed: %t", m.fifo.HasSynced(), m.listed)
	}
}
