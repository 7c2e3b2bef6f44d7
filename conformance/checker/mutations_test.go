package checker

import (
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

const far = listwatch.Version(1 << 40)

// mutations are the lies that a server or a client may tell.
var mutations = slices.Concat(streamMutations, bookmarkMutations, resumeMutations, stateMutations, otherMutations)

var streamMutations = []mutation{
	{"drop an event", Reliable, edit(func(p spot) bool { return p.change() && !p.first() && followed(p) }, spot.remove)},
	{"drop an event before a bookmark", Reliable, edit(func(p spot) bool {
		return p.change() && !p.first() && p.i+1 < len(p.s.Events) && p.s.Events[p.i+1].Type == Bookmark
	}, spot.remove)},
	{"repeat an event", Unique, edit(func(p spot) bool { return p.change() }, func(p spot) { p.insert(*p.frame()) })},
	{"repeat an event later", Unique, edit(func(p spot) bool { return p.change() && followed(p) }, func(p spot) {
		f := *p.frame()
		spot{p.s, len(p.s.Events)}.insert(f)
	})},
	{"swap two events", Ordered, edit(func(p spot) bool {
		n, ok := p.near(1)
		return ok && p.change() && n.frame().Version != p.frame().Version && !sharedVersion(p) && !sharedVersion(n)
	}, func(p spot) { p.s.Events[p.i], p.s.Events[p.i+1] = p.s.Events[p.i+1], p.s.Events[p.i] })},
	{"corrupt a payload", ContentExact, edit(func(p spot) bool { return p.change() }, func(p spot) { p.frame().Fingerprint ^= 2 })},
	{"corrupt an initial payload", ContentExact, edit(isInitial, func(p spot) { p.frame().Fingerprint ^= 2 })},
	{"wrong type", ContentExact, edit(func(p spot) bool { return p.change() }, func(p spot) { p.frame().Type = p.frame().Type%3 + 1 })},
	{"change among the initial events", ContentExact, edit(isInitial, func(p spot) { p.frame().Type = Modified })},
	{"wrong key", ContentExact, at(func(p spot) bool { return p.change() }, renamed)},
	{"wrong initial key", ContentExact, at(isInitial, renamed)},
	{"version that nobody wrote", NoPhantom, at(func(p spot) bool { return p.change() }, func(m *mutator, p spot) bool {
		f := *p.frame()
		f.Version = m.unwritten(f.Version)
		spot{p.s, p.i + 1}.insert(f)
		return f.Version != 0
	})},
	{"event from outside the selection", NoPhantom, at(func(p spot) bool { return p.change() && viewOf(p.s).selection != Selection{} }, outsideSelection)},
	{"event from before the write", NoPhantom, at(func(p spot) bool { return p.change() }, func(m *mutator, p spot) bool {
		p.frame().ReceivedAt = m.written(p.frame().Version)[0].Began - 1
		return true
	})},
	{"object that was never there among the initial events", NoPhantom, at(isInitial, func(m *mutator, p spot) bool {
		f := *p.frame()
		f.Version, f.Key = m.unwritten(m.h.Meta.Base), Key{Name: "zz"}
		p.insert(f)
		return f.Version != 0
	})},
	{"split a transaction", Atomic, edit(func(p spot) bool {
		n, ok := p.near(1)
		return ok && torn(p) && p.change() && n.frame().Version != p.frame().Version && !sharedVersion(n)
	}, func(p spot) { p.s.Events[p.i], p.s.Events[p.i+1] = p.s.Events[p.i+1], p.s.Events[p.i] })},
	{"turn a transaction round", Atomic, edit(func(p spot) bool { return p.change() && torn(p) }, func(p spot) { p.s.Events[p.i], p.s.Events[p.i-1] = p.s.Events[p.i-1], p.s.Events[p.i] })},
	{"bookmark in a transaction", Atomic, edit(func(p spot) bool { return p.s.Request.Bookmarks && p.change() && torn(p) }, func(p spot) {
		p.insert(ReceivedEvent{Type: Bookmark, Version: p.frame().Version})
	})},
}

// sharedVersion reports whether another change of the session has the version of p: a transaction.
func sharedVersion(p spot) bool {
	for i := range p.s.Events {
		if n := (spot{p.s, i}); i != p.i && n.isEvent() && !n.frame().Initial && n.frame().Version == p.frame().Version {
			return true
		}
	}
	return torn(p)
}

func renamed(m *mutator, p spot) bool {
	p.frame().Key.Name += "x"
	return len(m.written(p.frame().Version)) == 1
}

func outsideSelection(m *mutator, p spot) bool {
	v := viewOf(p.s)
	w := pickFrom(m, m.h.Writes, func(w *Write) bool {
		return w.Version > p.frame().Version && w.After != nil && w.Before == nil && w.Began < p.frame().ReceivedAt && !slices.Contains(w.After.Tags, "odd") &&
			!v.sees(w.Key, &object{tier: w.After.Labels["tier"]})
	})
	if w == nil || v.selection.Tag != "" {
		return false
	}
	spot{p.s, p.i + 1}.insert(ReceivedEvent{Type: Added, Key: w.Key, Version: w.Version, Fingerprint: w.After.Fingerprint})
	return true
}

var bookmarkMutations = []mutation{
	{"early bookmark", Bookmarkable, edit(func(p spot) bool { return p.s.Request.Bookmarks && p.change() && !torn(p) && !sharedVersion(p) }, func(p spot) {
		p.insert(ReceivedEvent{Type: Bookmark, Version: p.frame().Version})
	})},
	{"bookmark from the future", Bookmarkable, edit(func(p spot) bool { return p.frame().Type == Bookmark }, func(p spot) { p.frame().Version += far })},
	{"end of initial events from the future", Bookmarkable, at(func(p spot) bool { return p.frame().Type == Synced }, func(m *mutator, p spot) bool {
		writes := m.written(p.frame().Version)
		if len(writes) == 0 {
			return false
		}
		p.frame().ReceivedAt = writes[0].Began - 1
		return true
	})},
	{"bookmark that steps back", Bookmarkable, edit(func(p spot) bool { return p.change() && p.s.Request.Bookmarks }, func(p spot) {
		spot{p.s, p.i + 1}.insert(ReceivedEvent{Type: Bookmark, Version: p.frame().Version - 1})
	})},
	{"bookmark that nobody asked for", Bookmarkable, edit(func(p spot) bool { return p.change() && !p.s.Request.Bookmarks && !groupGoesOn(p) }, func(p spot) {
		spot{p.s, p.i + 1}.insert(ReceivedEvent{Type: Bookmark, Version: p.frame().Version})
	})},
	{"bookmark before the initial events have ended", Bookmarkable, edit(isInitial, func(p spot) {
		p.insert(ReceivedEvent{Type: Bookmark, Version: p.frame().Version})
	})},
	{"event of the state after its end", Bookmarkable, at(func(p spot) bool { return p.frame().Type == Synced }, func(m *mutator, p spot) bool {
		f, ok := newestSeen(m, viewOf(p.s), p.frame().Version)
		if !ok {
			return false
		}
		spot{p.s, p.i + 1}.insert(f)
		return true
	})},
	{"two ends of the initial events", SnapshotExact, edit(func(p spot) bool { return p.frame().Type == Synced }, func(p spot) { p.insert(*p.frame()) })},
	{"end of initial events that were not asked for", SnapshotExact, edit(opens, func(p spot) { p.insert(ReceivedEvent{Type: Synced, Version: p.s.Request.Version}) })},
}

// groupGoesOn reports whether the change after p may have the version of p: in this session or lost with it.
func groupGoesOn(p spot) bool {
	n, ok := p.near(1)
	return !ok || n.frame().Version == p.frame().Version
}

// newestSeen returns the newest event of a view up to version.
func newestSeen(m *mutator, v view, version listwatch.Version) (f ReceivedEvent, ok bool) {
	for _, s := range m.h.Sessions {
		if s.Request.Selection != v.selection {
			continue
		}
		for _, e := range s.Events {
			if !e.Initial && e.Type < Bookmark && e.Version <= version && e.Version > f.Version && len(m.written(e.Version)) == 1 {
				f, ok = e, true
			}
		}
	}
	return f, ok
}

var resumeMutations = []mutation{
	{"gap at resume", Resumable, edit(func(p spot) bool { return opens(p) && followed(p) }, spot.remove)},
	{"replay after resume", Resumable, at(opens, func(m *mutator, p spot) bool {
		f, ok := newestSeen(m, viewOf(p.s), p.s.Request.Version)
		if !ok {
			return false
		}
		p.insert(f)
		return true
	})},
	{"resume from an older version", Unique, func(m *mutator) bool {
		// The same event ends one session and begins the next one.
		n, s := m.session(func(n int, s *Session) bool {
			before := m.before(n)
			if before == nil || s.Request.Version == 0 || s.Request.InitialEvents || m.listed(s, s.Request.Version) || len(s.Events) == 0 || len(before.Events) == 0 || before.End.Expired {
				return false
			}
			last := spot{before, len(before.Events) - 1}
			v := last.frame().Version
			return last.change() && !m.listed(s, v-1) && len(m.written(v)) == 1 && v <= s.Request.Version && m.noFloorSince(v-1, s.Opened)
		})
		if s == nil {
			return false
		}
		f := m.before(n).Events[len(m.before(n).Events)-1]
		s.Request.Version = f.Version - 1
		spot{s, 0}.insert(f)
		return true
	}},
	{"resume from a newer version", Resumable, func(m *mutator) bool {
		_, s := m.session(func(n int, s *Session) bool {
			b := m.before(n)
			return b != nil && !b.End.Expired && len(s.Events) > 1 && opens(spot{s, 0}) && len(m.written(s.Events[0].Version)) == 1 &&
				len(b.Events) > 0 && !b.Events[len(b.Events)-1].Initial && !m.listed(s, s.Request.Version) && !m.listed(s, s.Events[0].Version)
		})
		if s == nil {
			return false
		}
		s.Request.Version = s.Events[0].Version
		spot{s, 0}.remove()
		return true
	}},
	{"dishonest 410", ExpiryJustified, func(m *mutator) bool {
		_, s := m.session(func(_ int, s *Session) bool {
			return s.End.At != 0 && !s.End.Expired && len(s.Events) > 0 && s.Request.Version != 0 && !s.Request.InitialEvents && m.noFloorSince(s.Request.Version, s.End.At)
		})
		if s == nil {
			return false
		}
		s.End.Expired, s.End.Remote = true, true
		return true
	}},
	{"silent skip", ExpiryJustified, at(func(p spot) bool { return opens(p) && followed(p) }, func(m *mutator, p spot) bool {
		v := p.frame().Version
		m.h.Compactions = append(m.h.Compactions, Compaction{v, v, p.s.Opened - 2, p.s.Opened - 1})
		p.remove()
		return true
	})},
	{"service from below the floor", ExpiryJustified, at(opens, func(m *mutator, p spot) bool {
		v := p.s.Request.Version + 1
		m.h.Compactions = append(m.h.Compactions, Compaction{v, v, p.s.Opened - 2, p.s.Opened - 1})
		return true
	})},
}

// before returns the session of the same watcher before session n, or nil.
func (m *mutator) before(n int) *Session {
	for i := n - 1; i >= 0; i-- {
		if m.h.Sessions[i].Watcher == m.h.Sessions[n].Watcher {
			return m.h.Sessions[i]
		}
	}
	return nil
}

func (m *mutator) listed(s *Session, v listwatch.Version) bool {
	return slices.ContainsFunc(m.h.Lists, func(l List) bool { return l.Watcher == s.Watcher && l.Version == v })
}

var stateMutations = []mutation{
	{"missing in the snapshot", SnapshotExact, edit(isInitial, spot.remove)},
	{"twice in the snapshot", SnapshotExact, edit(isInitial, func(p spot) { p.insert(*p.frame()) })},
	{"stale in the snapshot", SnapshotExact, at(isInitial, func(m *mutator, p spot) bool {
		w := m.older(viewOf(p.s), p.frame().Key, p.frame().Version)
		if w == nil {
			return false
		}
		p.frame().Version, p.frame().Fingerprint = w.Version, w.After.Fingerprint
		return true
	})},
	{"deleted but in the snapshot", SnapshotExact, at(func(p spot) bool { return p.frame().Type == Synced }, func(m *mutator, p spot) bool {
		w := m.gone(viewOf(p.s), p.frame().Version)
		if w == nil {
			return false
		}
		p.insert(ReceivedEvent{Type: Added, Key: w.Key, Version: w.Version, Fingerprint: w.After.Fingerprint, Initial: true})
		return true
	})},
	{"stale start", Fresh, at(func(p spot) bool {
		return p.frame().Type == Synced && p.s.Request.Version == 0 && !p.s.Request.AnyVersion
	}, func(m *mutator, p spot) bool {
		w := pickFrom(m, m.h.Writes, func(w *Write) bool { return w.Version > p.frame().Version })
		if w == nil {
			return false
		}
		p.s.Opened = w.Acked + 1
		return true
	})},
	{"start before the version that was asked for", Fresh, edit(func(p spot) bool { return p.frame().Type == Synced && !p.s.End.Expired }, func(p spot) {
		p.s.Request.Version, p.s.Request.AnyVersion = p.frame().Version+1, false
	})},
	{"start before what was seen", Fresh, func(m *mutator) bool {
		// The watcher has seen a write that is not acknowledged yet, and then begins again before it.
		side := &ObjectState{Fingerprint: 7}
		*m.h = History{
			Writes: []Write{{Version: 1, Key: Key{Name: "a"}, After: side, Began: 1, Acked: 2}, {Version: 2, Key: Key{Name: "b"}, After: side, Began: 3, Acked: 9}},
			Sessions: []*Session{
				{Watcher: "w", Request: Request{Version: 1}, Opened: 3, Events: []ReceivedEvent{{Added, Key{Name: "b"}, 2, false, 7, 4}}, End: End{At: 5, Error: "cut"}},
				{Watcher: "w", Request: Request{InitialEvents: true, Bookmarks: true}, Opened: 6, Events: []ReceivedEvent{
					{Added, Key{Name: "a"}, 1, true, 7, 7}, {Synced, Key{}, 1, false, 0, 8},
				}},
			},
		}
		return true
	}},
}

// older returns an older write of key that left it selected.
func (m *mutator) older(v view, key Key, than listwatch.Version) *Write {
	return pickFrom(m, m.h.Writes, func(w *Write) bool {
		return w.Key == key && w.Version < than && m.sees(v, w)
	})
}

// gone returns a write that left an object selected which was not by version v.
func (m *mutator) gone(v view, by listwatch.Version) *Write {
	last := make(map[Key]*Write)
	for i := range m.h.Writes {
		if w := &m.h.Writes[i]; w.Version <= by {
			last[w.Key] = w
		}
	}
	return pickFrom(m, m.h.Writes, func(w *Write) bool {
		return w.Version < by && m.sees(v, w) && !m.sees(v, last[w.Key])
	})
}

func (m *mutator) sees(v view, w *Write) bool {
	if w.After == nil {
		return false
	}
	o := &object{tier: w.After.Labels["tier"]}
	if slices.Contains(w.After.Tags, "odd") {
		o.ordinals = 1
	}
	return v.sees(w.Key, o)
}

var otherMutations = []mutation{
	{"missing in a list", ListExact, onList(func(l *List) bool { return len(l.Items) > 1 }, func(_ *mutator, l *List) bool {
		l.Items = l.Items[1:]
		return true
	})},
	{"stale in a list", ListExact, onList(func(l *List) bool { return len(l.Items) > 0 && l.Request.Selection == Selection{} }, func(m *mutator, l *List) bool {
		it := &l.Items[m.rand.IntN(len(l.Items))]
		w := m.older(views[0], it.Key, it.Version)
		if w == nil {
			return false
		}
		it.Version, it.Fingerprint = w.Version, w.After.Fingerprint
		return true
	})},
	{"corrupt in a list", ListExact, onList(func(l *List) bool { return len(l.Items) > 0 }, func(_ *mutator, l *List) bool {
		l.Items[0].Fingerprint ^= 2
		return true
	})},
	{"list of another version than asked for", ListExact, onList(func(l *List) bool { return l.Request.Exact }, func(_ *mutator, l *List) bool {
		l.Request.Version--
		return true
	})},
	{"list from the future", ListExact, onList(func(l *List) bool { return !l.Request.Exact && l.Watcher == "" }, func(_ *mutator, l *List) bool {
		l.Version += far
		return true
	})},
	{"stale list", Fresh, onList(func(l *List) bool { return !l.Request.Exact && l.After == Key{} }, func(m *mutator, l *List) bool {
		w := pickFrom(m, m.h.Writes, func(w *Write) bool { return w.Version > l.Version })
		if w == nil {
			return false
		}
		l.Began, l.ReceivedAt = w.Acked+1, w.Acked+2
		return true
	})},
	{"stuck", Converged, func(m *mutator) bool {
		_, s := m.session(m.carriesLast)
		if s == nil {
			return false
		}
		last := slices.IndexFunc(s.Events, func(f ReceivedEvent) bool { return f.Version >= m.lastSeen(viewOf(s)) })
		s.Events = s.Events[:last]
		return true
	}},
	{"late", Converged, func(m *mutator) bool {
		_, s := m.session(m.carriesLast)
		if s == nil {
			return false
		}
		for i := range s.Events {
			s.Events[i].ReceivedAt += 2 * time.Hour
		}
		return true
	}},
	{"missing in an informer", InformerExact, onHolding(func(h *InformerState) bool { return len(h.Items) > 0 }, func(_ *mutator, h *InformerState) { h.Items = h.Items[1:] })},
	{"corrupt in an informer", InformerExact, onHolding(func(h *InformerState) bool { return len(h.Items) > 0 }, func(_ *mutator, h *InformerState) { h.Items[0].Fingerprint ^= 2 })},
	{"phantom in an informer", InformerExact, onHolding(func(*InformerState) bool { return true }, func(_ *mutator, h *InformerState) {
		h.Items = append(h.Items, Item{Key{Name: "zz"}, far, 1})
	})},
	{"handler told an older state", InformerExact, onChange(func(c *HandlerCall) bool { return c.Type != Added }, func(c *HandlerCall) { c.Version = 1 })},
	{"handler told the wrong type", InformerExact, onChange(func(c *HandlerCall) bool { return c.Type != Added }, func(c *HandlerCall) { c.Type = Added })},
	{"handler told of a change of nothing", InformerExact, onChange(func(c *HandlerCall) bool { return c.Type == Added }, func(c *HandlerCall) { c.Type = Deleted })},
}

// carriesLast reports whether s is the last session of its watcher and brought it the last event there is, as a change.
func (m *mutator) carriesLast(n int, s *Session) bool {
	for _, later := range m.h.Sessions[n+1:] {
		if later.Watcher == s.Watcher {
			return false
		}
	}
	last := m.lastSeen(viewOf(s))
	i := slices.IndexFunc(s.Events, func(f ReceivedEvent) bool { return f.Version >= last && !f.Initial })
	return i > 0 && (spot{s, i}).change() && s.Events[i-1].Type != Synced && !s.Events[i-1].Initial && m.noSnapshotAfter(s, last)
}

func (m *mutator) noSnapshotAfter(s *Session, v listwatch.Version) bool {
	return !slices.ContainsFunc(s.Events, func(f ReceivedEvent) bool { return f.Type == Synced && f.Version >= v })
}

// lastSeen returns the version of the last write that the view sees.
func (m *mutator) lastSeen(v view) listwatch.Version {
	var last listwatch.Version
	was := make(map[Key]bool)
	for i := range m.h.Writes {
		w := &m.h.Writes[i]
		is := m.sees(v, w)
		if is || was[w.Key] {
			last = w.Version
		}
		was[w.Key] = is
	}
	return last
}

func onList(fits func(*List) bool, f func(*mutator, *List) bool) func(*mutator) bool {
	return func(m *mutator) bool {
		l := pickFrom(m, m.h.Lists, fits)
		return l != nil && f(m, l)
	}
}

func onHolding(fits func(*InformerState) bool, f func(*mutator, *InformerState)) func(*mutator) bool {
	return func(m *mutator) bool {
		h := pickFrom(m, m.h.InformerStates, fits)
		if h != nil {
			f(m, h)
		}
		return h != nil
	}
}

func onChange(fits func(*HandlerCall) bool, f func(*HandlerCall)) func(*mutator) bool {
	return func(m *mutator) bool {
		c := pickFrom(m, m.h.HandlerCalls, fits)
		if c != nil {
			f(c)
		}
		return c != nil
	}
}
