package checker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// A simulation creates histories of a correct server and correct clients. It shares no code
// with the checker: it implements selections on its own.
type simulation struct {
	rand    *rand.Rand
	now     time.Duration
	version listwatch.Version
	floor   listwatch.Version
	objects map[Key]*simObject
	log     []simWrite
	history *History
	clients []*simClient
}

type simObject struct {
	version     listwatch.Version
	tier        string
	fingerprint Fingerprint
	writeCount  int // number of writes to the object
}

// A simWrite is one change with the old and the new object.
type simWrite struct {
	version       listwatch.Version
	key           Key
	before, after *simObject
}

// A simSelection is a selection and a function that reports whether an object belongs to it.
type simSelection struct {
	selection Selection
	selects   func(Key, *simObject) bool
}

var simSelections = []simSelection{
	{Selection{}, func(Key, *simObject) bool { return true }},
	{Selection{Labels: "tier=gold"}, func(_ Key, o *simObject) bool { return o.tier == "gold" }},
	{Selection{Namespace: "a", Labels: "tier!=gold"}, func(k Key, o *simObject) bool {
		return k.Namespace == "a" && o.tier != "gold"
	}},
	{Selection{Fields: "metadata.name!=n1"}, func(k Key, _ *simObject) bool { return k.Name != "n1" }},
	{Selection{Tag: "odd"}, func(_ Key, o *simObject) bool { return isOdd(o) }},
}

func isOdd(o *simObject) bool { return o.writeCount%3 == 1 }

// A simClient watches one selection.
type simClient struct {
	name             string
	selection        simSelection
	resumes          bool // reconnects within a session
	bookmarks        bool // requests bookmarks
	session          *Session
	deliveredVersion listwatch.Version // everything up to this version was delivered
	pendingInitial   []ReceivedEvent   // initial events that are not yet delivered
	had              listwatch.Version // the version of the state of the expired watch
	isDifference     bool              // the initial events are a difference
	open             bool
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		rand: rand.New(rand.NewPCG(seed, 1)), version: 1000, now: time.Millisecond, objects: make(map[Key]*simObject),
	}
	s.history = &History{
		Meta: Meta{
			Name: "sim", Seed: seed, Base: 1000, AllCompactionsRecorded: true, MustExpire: true,
			ConvergenceTimeout: time.Hour,
		},
	}
	for i := range 2 * len(simSelections) {
		s.clients = append(s.clients, &simClient{
			name: fmt.Sprintf("w%d", i), selection: simSelections[i%len(simSelections)],
			resumes: i >= len(simSelections), bookmarks: s.rand.IntN(4) > 0,
		})
	}
	return s
}

// simulate returns a correct history with the given number of steps.
func simulate(seed uint64, steps int) *History {
	s := newSimulation(seed)
	for range steps {
		s.tick()
		switch n := s.rand.IntN(100); {
		case n < 45:
			s.write()
		case n < 48:
			s.compact()
		case n < 50:
			s.list(s.clients[s.rand.IntN(len(s.clients))].selection, "")
		case n < 51:
			s.recordInformerState()
		default:
			s.stepClient(s.clients[s.rand.IntN(len(s.clients))])
		}
	}
	s.tick()
	s.recordInformerState()
	s.history.Heals = append(s.history.Heals, Heal{s.now, s.version})
	for _, c := range s.clients {
		for c.deliveredVersion < s.version || !c.open || len(c.pendingInitial) > 0 {
			s.tick()
			s.advance(c)
		}
	}
	return s.history
}

func (s *simulation) tick() { s.now += time.Duration(1+s.rand.IntN(1000)) * time.Microsecond }

// write performs a single write or a transaction.
func (s *simulation) write() {
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

func (s *simulation) writeKey(key Key, began time.Duration) {
	old := s.objects[key]
	var next *simObject
	if old == nil || s.rand.IntN(4) > 0 {
		next = &simObject{
			version: s.version, tier: [...]string{"gold", "iron"}[s.rand.IntN(2)],
			fingerprint: Fingerprint(s.rand.Uint64() | 1),
		}
		if old != nil {
			next.writeCount = old.writeCount + 1
		}
	}
	w := Write{Version: s.version, Key: key, Began: began, Acked: s.now, After: next.state()}
	if old != nil {
		w.Before = old.state()
		w.Before.Fingerprint = old.deletedFingerprint(s.version)
	}
	s.history.Writes = append(s.history.Writes, w)
	s.log = append(s.log, simWrite{s.version, key, old, next})
	if next == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = next
	}
	eventType := Modified
	switch {
	case old == nil:
		eventType = Added
	case next == nil:
		eventType = Deleted
	}
	s.history.HandlerCalls = append(s.history.HandlerCalls, HandlerCall{"informer", eventType, key, s.version})
}

func (s *simObject) state() *ObjectState {
	if s == nil {
		return nil
	}
	state := &ObjectState{Labels: map[string]string{"tier": s.tier}, Fingerprint: s.fingerprint}
	if isOdd(s) {
		state.Tags = []string{"odd"}
	}
	return state
}

// deletedFingerprint returns the fingerprint of s in a DELETED event of version v.
func (s *simObject) deletedFingerprint(v listwatch.Version) Fingerprint {
	return s.fingerprint ^ Fingerprint(v)<<1
}

func (s *simulation) compact() {
	s.floor = s.version
	s.history.Compactions = append(s.history.Compactions, Compaction{s.floor, s.floor, s.now, s.now + 1})
	s.tick()
}

// eventsBetween returns the events of the selection v for the writes with versions in the range
// (from, to].
func (s *simulation) eventsBetween(v simSelection, from, to listwatch.Version) []ReceivedEvent {
	var events []ReceivedEvent
	for _, w := range s.log {
		if w.version <= from || w.version > to {
			continue
		}
		was, is := w.before != nil && v.selects(w.key, w.before), w.after != nil && v.selects(w.key, w.after)
		f := ReceivedEvent{Key: w.key, Version: w.version}
		switch {
		case was && is:
			f.Type, f.Fingerprint = Modified, w.after.fingerprint
		case is:
			f.Type, f.Fingerprint = Added, w.after.fingerprint
		case was:
			f.Type, f.Fingerprint = Deleted, w.before.deletedFingerprint(w.version)
		default:
			continue
		}
		events = append(events, f)
	}
	return events
}

// initialEvents returns the current objects of the selection v in key order.
func (s *simulation) initialEvents(v simSelection) []ReceivedEvent {
	var events []ReceivedEvent
	for _, key := range slices.SortedFunc(maps.Keys(s.objects), Key.compare) {
		if o := s.objects[key]; v.selects(key, o) {
			events = append(events,
				ReceivedEvent{Type: Added, Key: key, Version: o.version, Fingerprint: o.fingerprint, Initial: true})
		}
	}
	return events
}

// difference returns the difference to the state of v at the given version.
func (s *simulation) difference(v simSelection, since listwatch.Version) (events []ReceivedEvent) {
	for _, f := range s.initialEvents(v) {
		if f.Version > since {
			events = append(events, f)
		}
	}
	gone := map[Key]bool{}
	for _, w := range s.log {
		now := s.objects[w.key]
		if w.version > since && w.before != nil && v.selects(w.key, w.before) &&
			(now == nil || !v.selects(w.key, now)) &&
			!gone[w.key] {
			gone[w.key] = true
			events = append(events, ReceivedEvent{Type: Deleted, Key: w.key, Version: w.version, Initial: true})
		}
	}
	return events
}

func items(events []ReceivedEvent) []Item {
	var items []Item
	for _, f := range events {
		items = append(items, Item{f.Key, f.Version, f.Fingerprint})
	}
	return items
}

func (s *simulation) list(v simSelection, watcher string) {
	l := List{
		Watcher: watcher, Request: Request{Selection: v.selection}, Began: s.now, ReceivedAt: s.now + 1,
		Version: s.version, Items: items(s.initialEvents(v)),
	}
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

func (s *simulation) recordInformerState() {
	s.history.InformerStates = append(s.history.InformerStates,
		InformerState{"informer", Selection{}, s.version, items(s.initialEvents(simSelections[0]))})
}

// stepClient cuts the connection of a client with a probability of one in five, and otherwise
// advances the client.
func (s *simulation) stepClient(c *simClient) {
	if c.open && s.rand.IntN(5) == 0 {
		s.cutConnection(c)
		return
	}
	s.advance(c)
}

// advance opens the client's watch if necessary, and delivers some of its pending events.
func (s *simulation) advance(c *simClient) {
	switch {
	case !c.open && c.deliveredVersion != 0 && c.resumes:
		s.reconnect(c)
	case !c.open:
		s.open(c)
	case len(c.pendingInitial) > 0:
		n := 1 + s.rand.IntN(len(c.pendingInitial))
		s.deliver(c, c.pendingInitial[:n]...)
		if c.pendingInitial = c.pendingInitial[n:]; len(c.pendingInitial) == 0 {
			s.endInitialEvents(c)
		}
	default:
		s.follow(c)
	}
}

func (s *simulation) open(c *simClient) {
	request := Request{Selection: c.selection.selection, Bookmarks: c.bookmarks}
	c.session = &Session{Watcher: c.name, Transport: "h2", Opened: s.now, Ready: s.now + 1}
	s.history.Sessions = append(s.history.Sessions, c.session)
	s.now += 2
	c.open = true
	if c.resumes {
		c.session.Connections = append(c.session.Connections, Connection{From: c.deliveredVersion, Opened: s.now})
	}
	switch n := s.rand.IntN(8); {
	case c.deliveredVersion != 0:
		request.Version = c.deliveredVersion
		c.session.Request = request
		if c.deliveredVersion < s.floor {
			s.expire(c)
		}
		return
	case n == 0: // a list and a watch from its version
		s.list(c.selection, c.name)
		request.Version, c.deliveredVersion = s.version, s.version
		if s.rand.IntN(3) == 0 { // the history is discarded before the watch is requested
			s.write()
			s.compact()
			c.session.Request, c.session.Opened = request, s.now
			if s.tick(); s.rand.IntN(2) == 0 {
				s.expire(c)
				return
			}
			c.session.End, c.open, c.deliveredVersion = End{At: s.now, Error: "cut"}, false, 0
			return
		}
	case n == 1: // a watch of new changes only
		request.AnyVersion = s.rand.IntN(2) == 0
		c.deliveredVersion = s.version
	default:
		request.InitialEvents, c.isDifference = true, false
		request.AnyVersion = n == 2
		c.pendingInitial = s.initialEvents(c.selection)
		if n == 3 {
			request.Version = s.version
		}
		if c.had != 0 && c.bookmarks && n > 3 {
			request.Since = c.had
			if n > 4 { // otherwise the server does not know the difference
				c.isDifference, c.pendingInitial = true, s.difference(c.selection, c.had)
			}
		}
		c.deliveredVersion = s.version
		if len(c.pendingInitial) == 0 {
			c.session.Request = request
			s.endInitialEvents(c)
		}
	}
	c.session.Request = request
}

func (s *simulation) reconnect(c *simClient) {
	from := c.deliveredVersion
	if events := c.session.Events; len(events) > 1 && s.rand.IntN(2) == 0 && events[len(events)-1].Version == from {
		from-- // resume before the last transaction, which may be incomplete
	}
	c.session.Connections = append(c.session.Connections, Connection{From: from, Opened: s.now})
	c.open = true
	if from < s.floor {
		s.expire(c)
	}
}

// endInitialEvents sends the bookmark that ends the initial events.
func (s *simulation) endInitialEvents(c *simClient) {
	if c.bookmarks {
		synced := ReceivedEvent{Type: Synced, Version: c.deliveredVersion}
		if c.isDifference {
			synced.Since = c.session.Request.Since
		}
		s.deliver(c, synced)
	}
}

func (s *simulation) deliver(c *simClient, events ...ReceivedEvent) {
	for _, f := range events {
		f.ReceivedAt = s.now
		c.session.Events = append(c.session.Events, f)
	}
}

// follow delivers the events up to some version, and sometimes a bookmark. If a compaction has
// dropped the next events, the session expires.
func (s *simulation) follow(c *simClient) {
	to := s.version
	if s.rand.IntN(3) == 0 {
		to = c.deliveredVersion + listwatch.Version(s.rand.IntN(int(s.version-c.deliveredVersion)+1))
	}
	events := s.eventsBetween(c.selection, c.deliveredVersion, to)
	if c.deliveredVersion < s.floor &&
		(len(s.eventsBetween(c.selection, c.deliveredVersion, s.floor)) > 0 || s.rand.IntN(2) == 0) {
		s.expire(c)
		return
	}
	s.deliver(c, events...)
	c.deliveredVersion = max(c.deliveredVersion, to)
	if c.bookmarks && s.rand.IntN(3) == 0 {
		s.deliver(c, ReceivedEvent{Type: Bookmark, Version: c.deliveredVersion})
	}
}

func (s *simulation) cutConnection(c *simClient) {
	c.open = false
	if c.resumes {
		c.session.Connections[len(c.session.Connections)-1].Lost = s.now
		c.session.Connections[len(c.session.Connections)-1].Error = "connection reset"
	}
	switch {
	case len(c.pendingInitial) > 0:
		// The initial events were interrupted: start again.
		c.pendingInitial, c.deliveredVersion = nil, 0
		c.session.End = End{At: s.now, Error: "cut", Expired: c.resumes}
	case !c.resumes:
		c.session.End = End{At: s.now, Error: "cut"}
	}
	s.history.Faults = append(s.history.Faults, Fault{Kind: "cut", Watcher: c.name, At: s.now})
	if !c.resumes && (s.rand.IntN(6) == 0 || !c.knowsPosition()) {
		c.deliveredVersion = 0 // relists, whether necessary or not
	}
}

// expire ends a session with Expired.
func (s *simulation) expire(c *simClient) {
	c.session.End = End{At: s.now, Expired: true, Remote: true, Error: "expired"}
	if c.had = 0; len(c.pendingInitial) == 0 {
		c.had = c.deliveredVersion
	}
	c.open, c.deliveredVersion, c.pendingInitial = false, 0, nil
}

// knowsPosition reports whether the client can tell which version it has reached. Without
// bookmarks, it needs a change to know that the initial events are complete.
func (s *simClient) knowsPosition() bool {
	return s.session.Request.Version != 0 && !s.session.Request.InitialEvents ||
		slices.ContainsFunc(s.session.Events, func(f ReceivedEvent) bool { return !f.Initial })
}
