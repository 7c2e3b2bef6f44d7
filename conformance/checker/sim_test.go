package checker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// A sim makes histories of a server and clients that do everything right. It shares no code with the checker: what a selection sees is
// written down here once more.
type sim struct {
	rand    *rand.Rand
	now     time.Duration
	version listwatch.Version
	floor   listwatch.Version
	objects map[Key]*object
	log     []write
	history *History
	clients []*simClient
}

type object struct {
	version  listwatch.Version
	tier     string
	payload  Fingerprint
	ordinals int // how often it was written
}

// write is one change, with the objects themselves.
type write struct {
	version       listwatch.Version
	key           Key
	before, after *object
}

// A view is a selection, and what it means.
type view struct {
	selection Selection
	sees      func(Key, *object) bool
}

var views = []view{
	{Selection{}, func(Key, *object) bool { return true }},
	{Selection{Labels: "tier=gold"}, func(_ Key, o *object) bool { return o.tier == "gold" }},
	{Selection{Namespace: "a", Labels: "tier!=gold"}, func(k Key, o *object) bool { return k.Namespace == "a" && o.tier != "gold" }},
	{Selection{Fields: "metadata.name!=n1"}, func(k Key, _ *object) bool { return k.Name != "n1" }},
	{Selection{Tag: "odd"}, func(_ Key, o *object) bool { return isOdd(o) }},
}

func isOdd(o *object) bool { return o.ordinals%3 == 1 }

// A simClient follows one view, in one of the ways there are.
type simClient struct {
	name     string
	view     view
	remote   bool // it resumes by itself, within a session
	marks    bool // it asks for bookmarks
	session  *Session
	position listwatch.Version // everything up to it has been delivered
	state    []ReceivedEvent   // initial events that have not come yet
	open     bool
}

func newSim(seed uint64) *sim {
	s := &sim{rand: rand.New(rand.NewPCG(seed, 1)), version: 1000, now: time.Millisecond, objects: make(map[Key]*object)}
	s.history = &History{Meta: Meta{Name: "sim", Seed: seed, Base: 1000, AllCompactionsRecorded: true, MustExpire: true, ConvergenceTimeout: time.Hour}}
	for i := range 2 * len(views) {
		s.clients = append(s.clients, &simClient{name: fmt.Sprintf("w%d", i), view: views[i%len(views)], remote: i >= len(views), marks: s.rand.IntN(4) > 0})
	}
	return s
}

// simulate returns a history of some steps in which everything is right.
func simulate(seed uint64, steps int) *History {
	s := newSim(seed)
	for range steps {
		s.tick()
		switch n := s.rand.IntN(100); {
		case n < 45:
			s.write()
		case n < 48:
			s.compact()
		case n < 50:
			s.list(s.clients[s.rand.IntN(len(s.clients))].view, "")
		case n < 51:
			s.hold()
		default:
			s.step(s.clients[s.rand.IntN(len(s.clients))])
		}
	}
	s.tick()
	s.hold()
	s.history.Heals = append(s.history.Heals, Heal{s.now, s.version})
	for _, c := range s.clients {
		for c.position < s.version || !c.open || len(c.state) > 0 {
			s.tick()
			s.advance(c)
		}
	}
	return s.history
}

func (s *sim) tick() { s.now += time.Duration(1+s.rand.IntN(1000)) * time.Microsecond }

// write makes one write, or a transaction of some.
func (s *sim) write() {
	began := s.now
	s.version += listwatch.Version(1 + s.rand.IntN(3))
	count := 1
	if s.rand.IntN(5) == 0 {
		count = 2 + s.rand.IntN(3)
	}
	keys := make(map[Key]bool)
	for len(keys) < count {
		keys[Key{Namespace: string("ab"[s.rand.IntN(2)]), Name: fmt.Sprintf("n%d", s.rand.IntN(5))}] = true
	}
	s.tick()
	for _, key := range slices.SortedFunc(maps.Keys(keys), Key.compare) {
		s.writeKey(key, began)
	}
}

func (s *sim) writeKey(key Key, began time.Duration) {
	old := s.objects[key]
	var next *object
	if old == nil || s.rand.IntN(4) > 0 {
		next = &object{version: s.version, tier: [...]string{"gold", "iron"}[s.rand.IntN(2)], payload: Fingerprint(s.rand.Uint64() | 1)}
		if old != nil {
			next.ordinals = old.ordinals + 1
		}
	}
	w := Write{Version: s.version, Key: key, Began: began, Acked: s.now, After: next.side()}
	if old != nil {
		w.Before = old.side()
		w.Before.Fingerprint = old.gone(s.version)
	}
	s.history.Writes = append(s.history.Writes, w)
	s.log = append(s.log, write{s.version, key, old, next})
	if next == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = next
	}
	what := Modified
	switch {
	case old == nil:
		what = Added
	case next == nil:
		what = Deleted
	}
	s.history.HandlerCalls = append(s.history.HandlerCalls, HandlerCall{"informer", what, key, s.version})
}

func (o *object) side() *ObjectState {
	if o == nil {
		return nil
	}
	s := &ObjectState{Labels: map[string]string{"tier": o.tier}, Fingerprint: o.payload}
	if isOdd(o) {
		s.Tags = []string{"odd"}
	}
	return s
}

// gone is the payload of o as a DELETED event of version v shows it.
func (o *object) gone(v listwatch.Version) Fingerprint { return o.payload ^ Fingerprint(v)<<1 }

func (s *sim) compact() {
	s.floor = s.version
	s.history.Compactions = append(s.history.Compactions, Compaction{s.floor, s.floor, s.now, s.now + 1})
	s.tick()
}

// seen returns what a view sees of the writes after from up to to.
func (s *sim) seen(v view, from, to listwatch.Version) []ReceivedEvent {
	var frames []ReceivedEvent
	for _, w := range s.log {
		if w.version <= from || w.version > to {
			continue
		}
		was, is := w.before != nil && v.sees(w.key, w.before), w.after != nil && v.sees(w.key, w.after)
		f := ReceivedEvent{Key: w.key, Version: w.version}
		switch {
		case was && is:
			f.Type, f.Fingerprint = Modified, w.after.payload
		case is:
			f.Type, f.Fingerprint = Added, w.after.payload
		case was:
			f.Type, f.Fingerprint = Deleted, w.before.gone(w.version)
		default:
			continue
		}
		frames = append(frames, f)
	}
	return frames
}

// state returns what a view sees now, in key order.
func (s *sim) state(v view) []ReceivedEvent {
	var frames []ReceivedEvent
	for _, key := range slices.SortedFunc(maps.Keys(s.objects), Key.compare) {
		if o := s.objects[key]; v.sees(key, o) {
			frames = append(frames, ReceivedEvent{Type: Added, Key: key, Version: o.version, Fingerprint: o.payload, Initial: true})
		}
	}
	return frames
}

func items(frames []ReceivedEvent) []Item {
	var items []Item
	for _, f := range frames {
		items = append(items, Item{f.Key, f.Version, f.Fingerprint})
	}
	return items
}

func (s *sim) list(v view, watcher string) {
	l := List{Watcher: watcher, Request: Request{Selection: v.selection}, Began: s.now, ReceivedAt: s.now + 1, Version: s.version, Items: items(s.state(v))}
	switch n := len(l.Items); {
	case s.rand.IntN(4) == 0:
		l.Request.Version, l.Request.Exact = s.version, true
	case watcher == "" && n > 2 && s.rand.IntN(3) == 0: // two pages
		rest := l
		rest.After, rest.Items = l.Items[n/2].Key, l.Items[n/2+1:]
		l.Items, l.More = l.Items[:n/2+1], true
		s.history.Lists = append(s.history.Lists, rest)
	}
	s.history.Lists = append(s.history.Lists, l)
}

func (s *sim) hold() {
	s.history.InformerStates = append(s.history.InformerStates, InformerState{"informer", Selection{}, s.version, items(s.state(views[0]))})
}

// step does something that may happen to a client.
func (s *sim) step(c *simClient) {
	if c.open && s.rand.IntN(5) == 0 {
		s.cut(c)
		return
	}
	s.advance(c)
}

// advance opens what is not open, and delivers some of what is to come.
func (s *sim) advance(c *simClient) {
	switch {
	case !c.open && c.position != 0 && c.remote:
		s.reconnect(c)
	case !c.open:
		s.open(c)
	case len(c.state) > 0:
		n := 1 + s.rand.IntN(len(c.state))
		s.deliver(c, c.state[:n]...)
		if c.state = c.state[n:]; len(c.state) == 0 {
			s.sync(c)
		}
	default:
		s.follow(c)
	}
}

func (s *sim) open(c *simClient) {
	asked := Request{Selection: c.view.selection, Bookmarks: c.marks}
	c.session = &Session{Watcher: c.name, Transport: "h2", Opened: s.now, Ready: s.now + 1}
	s.history.Sessions = append(s.history.Sessions, c.session)
	s.now += 2
	c.open = true
	if c.remote {
		c.session.Connections = append(c.session.Connections, Connection{From: c.position, Opened: s.now})
	}
	switch n := s.rand.IntN(8); {
	case c.position != 0:
		asked.Version = c.position
		c.session.Request = asked
		if c.position < s.floor {
			s.expire(c)
		}
		return
	case n == 0: // a list, and what follows it
		s.list(c.view, c.name)
		asked.Version, c.position = s.version, s.version
		if s.rand.IntN(3) == 0 { // and what follows it is gone before it is asked for
			s.write()
			s.compact()
			c.session.Request, c.session.Opened = asked, s.now
			if s.tick(); s.rand.IntN(2) == 0 {
				s.expire(c)
				return
			}
			c.session.End, c.open, c.position = End{At: s.now, Error: "cut"}, false, 0
			return
		}
	case n == 1: // changes from now on
		asked.AnyVersion = s.rand.IntN(2) == 0
		c.position = s.version
	default:
		asked.InitialEvents = true
		asked.AnyVersion = n == 2
		c.state = s.state(c.view)
		if n == 3 {
			asked.Version = s.version
		}
		c.position = s.version
		if len(c.state) == 0 {
			c.session.Request = asked
			s.sync(c)
		}
	}
	c.session.Request = asked
}

func (s *sim) reconnect(c *simClient) {
	from := c.position
	if frames := c.session.Events; len(frames) > 1 && s.rand.IntN(2) == 0 && frames[len(frames)-1].Version == from {
		from-- // the last group may not have been complete
	}
	c.session.Connections = append(c.session.Connections, Connection{From: from, Opened: s.now})
	c.open = true
	if from < s.floor {
		s.expire(c)
	}
}

// sync ends the initial events.
func (s *sim) sync(c *simClient) {
	if c.marks {
		s.deliver(c, ReceivedEvent{Type: Synced, Version: c.position})
	}
}

func (s *sim) deliver(c *simClient, frames ...ReceivedEvent) {
	for _, f := range frames {
		f.ReceivedAt = s.now
		c.session.Events = append(c.session.Events, f)
	}
}

// follow delivers up to some version, which may be the middle of a transaction, and perhaps a bookmark.
func (s *sim) follow(c *simClient) {
	to := s.version
	if s.rand.IntN(3) == 0 {
		to = c.position + listwatch.Version(s.rand.IntN(int(s.version-c.position)+1))
	}
	frames := s.seen(c.view, c.position, to)
	if c.position < s.floor && (len(s.seen(c.view, c.position, s.floor)) > 0 || s.rand.IntN(2) == 0) {
		s.expire(c)
		return
	}
	s.deliver(c, frames...)
	c.position = max(c.position, to)
	if c.marks && s.rand.IntN(3) == 0 {
		s.deliver(c, ReceivedEvent{Type: Bookmark, Version: c.position})
	}
}

func (s *sim) cut(c *simClient) {
	c.open = false
	if c.remote {
		c.session.Connections[len(c.session.Connections)-1].Lost = s.now
		c.session.Connections[len(c.session.Connections)-1].Error = "connection reset"
	}
	switch {
	case len(c.state) > 0:
		// What came is no state: begin again.
		c.state, c.position = nil, 0
		c.session.End = End{At: s.now, Error: "cut", Expired: c.remote}
	case !c.remote:
		c.session.End = End{At: s.now, Error: "cut"}
	}
	s.history.Faults = append(s.history.Faults, Fault{Kind: "cut", Watcher: c.name, At: s.now})
	if !c.remote && (s.rand.IntN(6) == 0 || !c.knows()) {
		c.position = 0 // it relists, with need or without
	}
}

// expire ends a session because the history is gone.
func (s *sim) expire(c *simClient) {
	c.session.End = End{At: s.now, Expired: true, Remote: true, Error: "expired"}
	c.open, c.position, c.state = false, 0, nil
}

// knows reports whether the client can tell how far it is: without bookmarks it needs a change to know that the state is complete, or
// from where on a watch from now on has told it everything.
func (c *simClient) knows() bool {
	return c.session.Request.Version != 0 && !c.session.Request.InitialEvents ||
		slices.ContainsFunc(c.session.Events, func(f ReceivedEvent) bool { return !f.Initial })
}
