package checker

import (
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

const farVersion = listwatch.Version(1 << 40)

// mutations are defects of a server or a client. Each breaks one guarantee.
var mutations = slices.Concat(streamMutations, bookmarkMutations, resumeMutations, stateMutations, otherMutations)

var streamMutations = []mutation{
	{"drop an event", Reliable, editEvent(func(p eventRef) bool {
		return p.isChange() && !p.isFirst() && isFollowedByChange(p)
	}, eventRef.remove)},
	{"drop an event before a bookmark", Reliable, editEvent(func(p eventRef) bool {
		return p.isChange() && !p.isFirst() && p.index+1 < len(p.session.Events) &&
			p.session.Events[p.index+1].Type == Bookmark
	}, eventRef.remove)},
	{"repeat an event", Unique, editEvent(func(p eventRef) bool { return p.isChange() },
		func(p eventRef) { p.insert(*p.event()) })},
	{"repeat an event later", Unique, editEvent(func(p eventRef) bool {
		return p.isChange() && isFollowedByChange(p)
	}, func(p eventRef) {
		f := *p.event()
		eventRef{p.session, len(p.session.Events)}.insert(f)
	})},
	{"swap two events", Ordered, editEvent(func(p eventRef) bool {
		n, ok := p.neighbor(1)
		return ok && p.isChange() && n.event().Version != p.event().Version && !sharedVersion(p) && !sharedVersion(n)
	}, func(p eventRef) {
		p.session.Events[p.index], p.session.Events[p.index+1] = p.session.Events[p.index+1], p.session.Events[p.index]
	})},
	{"corrupt the content", ContentExact, editEvent(func(p eventRef) bool { return p.isChange() },
		func(p eventRef) { p.event().Fingerprint ^= 2 })},
	{"corrupt the content of an initial event", ContentExact, editEvent(isInitial,
		func(p eventRef) { p.event().Fingerprint ^= 2 })},
	{"wrong event type", ContentExact, editEvent(func(p eventRef) bool { return p.isChange() },
		func(p eventRef) { p.event().Type = p.event().Type%3 + 1 })},
	{"MODIFIED in the initial events", ContentExact, editEvent(isInitial,
		func(p eventRef) { p.event().Type = Modified })},
	{"wrong key", ContentExact, onEvent(func(p eventRef) bool { return p.isChange() }, renameKey)},
	{"wrong initial key", ContentExact, onEvent(isInitial, renameKey)},
	{"version without a write", NoPhantom, onEvent(func(p eventRef) bool { return p.isChange() },
		func(m *mutator, p eventRef) bool {
			f := *p.event()
			f.Version = m.unusedVersion(f.Version)
			eventRef{p.session, p.index + 1}.insert(f)
			return f.Version != 0
		})},
	{"event from outside the selection", NoPhantom, onEvent(func(p eventRef) bool {
		return p.isChange() && simSelectionOf(p.session).selection != Selection{}
	}, outsideSelection)},
	{"event from before the write", NoPhantom, onEvent(func(p eventRef) bool { return p.isChange() },
		func(m *mutator, p eventRef) bool {
			p.event().ReceivedAt = m.writesAt(p.event().Version)[0].Began - 1
			return true
		})},
	{"initial event for an unknown object", NoPhantom, onEvent(isInitial, func(m *mutator, p eventRef) bool {
		f := *p.event()
		f.Version, f.Key = m.unusedVersion(m.history.Meta.Base), Key{Name: "zz"}
		p.insert(f)
		return f.Version != 0
	})},
	{"split a transaction", Atomic, editEvent(func(p eventRef) bool {
		n, ok := p.neighbor(1)
		return ok && continuesVersion(p) && p.isChange() && n.event().Version != p.event().Version && !sharedVersion(n)
	}, func(p eventRef) {
		p.session.Events[p.index], p.session.Events[p.index+1] = p.session.Events[p.index+1], p.session.Events[p.index]
	})},
	{"reverse a transaction", Atomic, editEvent(func(p eventRef) bool {
		return p.isChange() && continuesVersion(p)
	}, func(p eventRef) {
		p.session.Events[p.index], p.session.Events[p.index-1] = p.session.Events[p.index-1], p.session.Events[p.index]
	})},
	{"bookmark in a transaction", Atomic, editEvent(func(p eventRef) bool {
		return p.session.Request.Bookmarks && p.isChange() && continuesVersion(p)
	}, func(p eventRef) {
		p.insert(ReceivedEvent{Type: Bookmark, Version: p.event().Version})
	})},
}

// sharedVersion reports whether p belongs to a transaction of several events.
func sharedVersion(p eventRef) bool {
	for i := range p.session.Events {
		if n := (eventRef{p.session, i}); i != p.index && n.hasObject() && !n.event().Initial &&
			n.event().Version == p.event().Version {
			return true
		}
	}
	return continuesVersion(p)
}

func renameKey(m *mutator, p eventRef) bool {
	p.event().Key.Name += "x"
	return len(m.writesAt(p.event().Version)) == 1
}

func outsideSelection(m *mutator, p eventRef) bool {
	v := simSelectionOf(p.session)
	w := pickFrom(m, m.history.Writes, func(w *Write) bool {
		return w.Version > p.event().Version && w.After != nil && w.Before == nil && w.Began < p.event().ReceivedAt &&
			!slices.Contains(w.After.Tags, "odd") &&
			!v.selects(w.Key, &simObject{tier: w.After.Labels["tier"]})
	})
	if w == nil || v.selection.Tag != "" {
		return false
	}
	eventRef{p.session, p.index + 1}.insert(ReceivedEvent{
		Type: Added, Key: w.Key, Version: w.Version, Fingerprint: w.After.Fingerprint,
	})
	return true
}

var bookmarkMutations = []mutation{
	{"early bookmark", Bookmarkable, editEvent(func(p eventRef) bool {
		return p.session.Request.Bookmarks && p.isChange() && !continuesVersion(p) && !sharedVersion(p)
	}, func(p eventRef) {
		p.insert(ReceivedEvent{Type: Bookmark, Version: p.event().Version})
	})},
	{"bookmark from the future", Bookmarkable, editEvent(func(p eventRef) bool { return p.event().Type == Bookmark },
		func(p eventRef) { p.event().Version += farVersion })},
	{"end of initial events from the future", Bookmarkable, onEvent(func(p eventRef) bool {
		return p.event().Type == Synced
	}, func(m *mutator, p eventRef) bool {
		writes := m.writesAt(p.event().Version)
		if len(writes) == 0 {
			return false
		}
		p.event().ReceivedAt = writes[0].Began - 1
		return true
	})},
	{"decreasing bookmark", Bookmarkable, editEvent(func(p eventRef) bool {
		return p.isChange() && p.session.Request.Bookmarks
	}, func(p eventRef) {
		eventRef{p.session, p.index + 1}.insert(ReceivedEvent{Type: Bookmark, Version: p.event().Version - 1})
	})},
	{"unrequested bookmark", Bookmarkable, editEvent(func(p eventRef) bool {
		return p.isChange() && !p.session.Request.Bookmarks && !versionMayContinue(p)
	}, func(p eventRef) {
		eventRef{p.session, p.index + 1}.insert(ReceivedEvent{Type: Bookmark, Version: p.event().Version})
	})},
	{"bookmark before the end of the initial events", Bookmarkable, editEvent(isInitial, func(p eventRef) {
		p.insert(ReceivedEvent{Type: Bookmark, Version: p.event().Version})
	})},
	{"old event after the initial events", Bookmarkable, onEvent(func(p eventRef) bool {
		return p.event().Type == Synced
	}, func(m *mutator, p eventRef) bool {
		f, ok := newestEventUpTo(m, simSelectionOf(p.session), p.event().Version)
		if !ok {
			return false
		}
		eventRef{p.session, p.index + 1}.insert(f)
		return true
	})},
	{"initial events end twice", SnapshotExact, editEvent(func(p eventRef) bool { return p.event().Type == Synced },
		func(p eventRef) { p.insert(*p.event()) })},
	{"end of initial events without a request", SnapshotExact, editEvent(isFirstAfterResume,
		func(p eventRef) { p.insert(ReceivedEvent{Type: Synced, Version: p.session.Request.Version}) })},
}

// versionMayContinue reports whether an event after p may have the same version as p: the next
// event is a change with that version, or no change directly follows p.
func versionMayContinue(p eventRef) bool {
	n, ok := p.neighbor(1)
	return !ok || n.event().Version == p.event().Version
}

// newestEventUpTo returns the newest change of selection v up to the given version.
func newestEventUpTo(m *mutator, v simSelection, version listwatch.Version) (f ReceivedEvent, ok bool) {
	for _, s := range m.history.Sessions {
		if s.Request.Selection != v.selection {
			continue
		}
		for _, e := range s.Events {
			if !e.Initial && e.Type < Bookmark && e.Version <= version && e.Version > f.Version &&
				len(m.writesAt(e.Version)) == 1 {
				f, ok = e, true
			}
		}
	}
	return f, ok
}

var resumeMutations = []mutation{
	{"gap at resume", Resumable, editEvent(func(p eventRef) bool {
		return isFirstAfterResume(p) && isFollowedByChange(p)
	}, eventRef.remove)},
	{"replay after resume", Resumable, onEvent(isFirstAfterResume, func(m *mutator, p eventRef) bool {
		f, ok := newestEventUpTo(m, simSelectionOf(p.session), p.session.Request.Version)
		if !ok {
			return false
		}
		p.insert(f)
		return true
	})},
	{"resume from an older version", Unique, func(m *mutator) bool {
		// The last event of a session is repeated as the first event of the next session.
		n, s := m.pickSession(func(n int, s *Session) bool {
			before := m.previousSession(n)
			if before == nil || s.Request.Version == 0 || s.Request.InitialEvents || m.listed(s, s.Request.Version) ||
				len(s.Events) == 0 || len(before.Events) == 0 || before.End.Expired {
				return false
			}
			last := eventRef{before, len(before.Events) - 1}
			v := last.event().Version
			return last.isChange() && !m.listed(s, v-1) && len(m.writesAt(v)) == 1 && v <= s.Request.Version &&
				m.notCompacted(v-1, s.Opened)
		})
		if s == nil {
			return false
		}
		f := m.previousSession(n).Events[len(m.previousSession(n).Events)-1]
		s.Request.Version = f.Version - 1
		eventRef{s, 0}.insert(f)
		return true
	}},
	{"resume from a newer version", Resumable, func(m *mutator) bool {
		_, s := m.pickSession(func(n int, s *Session) bool {
			b := m.previousSession(n)
			return b != nil && !b.End.Expired && len(s.Events) > 1 && isFirstAfterResume(eventRef{s, 0}) &&
				len(m.writesAt(s.Events[0].Version)) == 1 &&
				len(b.Events) > 0 && !b.Events[len(b.Events)-1].Initial && !m.listed(s, s.Request.Version) &&
				!m.listed(s, s.Events[0].Version)
		})
		if s == nil {
			return false
		}
		s.Request.Version = s.Events[0].Version
		eventRef{s, 0}.remove()
		return true
	}},
	{"unjustified 410", ExpiryJustified, func(m *mutator) bool {
		_, s := m.pickSession(func(_ int, s *Session) bool {
			return s.End.At != 0 && !s.End.Expired && len(s.Events) > 0 && s.Request.Version != 0 &&
				!s.Request.InitialEvents && m.notCompacted(s.Request.Version, s.End.At)
		})
		if s == nil {
			return false
		}
		s.End.Expired, s.End.Remote = true, true
		return true
	}},
	{"silent gap below the floor", ExpiryJustified, onEvent(func(p eventRef) bool {
		return isFirstAfterResume(p) && isFollowedByChange(p)
	}, func(m *mutator, p eventRef) bool {
		v := p.event().Version
		m.history.Compactions = append(m.history.Compactions,
			Compaction{v, v, p.session.Opened - 2, p.session.Opened - 1})
		p.remove()
		return true
	})},
	{"resume from below the floor", ExpiryJustified, onEvent(isFirstAfterResume, func(m *mutator, p eventRef) bool {
		v := p.session.Request.Version + 1
		m.history.Compactions = append(m.history.Compactions,
			Compaction{v, v, p.session.Opened - 2, p.session.Opened - 1})
		return true
	})},
}

// previousSession returns the previous session of the same watcher, or nil.
func (m *mutator) previousSession(n int) *Session {
	for i := n - 1; i >= 0; i-- {
		if m.history.Sessions[i].Watcher == m.history.Sessions[n].Watcher {
			return m.history.Sessions[i]
		}
	}
	return nil
}

func (m *mutator) listed(s *Session, v listwatch.Version) bool {
	return slices.ContainsFunc(m.history.Lists, func(l List) bool { return l.Watcher == s.Watcher && l.Version == v })
}

var stateMutations = []mutation{
	{"missing object in the snapshot", SnapshotExact, editEvent(isInitial, eventRef.remove)},
	{"duplicate object in the snapshot", SnapshotExact, editEvent(isInitial,
		func(p eventRef) { p.insert(*p.event()) })},
	{"stale object in the snapshot", SnapshotExact, onEvent(isInitial, func(m *mutator, p eventRef) bool {
		w := m.olderWrite(simSelectionOf(p.session), p.event().Key, p.event().Version)
		if w == nil {
			return false
		}
		p.event().Version, p.event().Fingerprint = w.Version, w.After.Fingerprint
		return true
	})},
	{"a difference without a deletion", SnapshotExact, onEvent(func(p eventRef) bool {
		return isGone(p) && simSelectionOf(p.session).selection == Selection{}
	}, func(m *mutator, p eventRef) bool {
		// The client must have had the object.
		created := pickFrom(m, m.history.Writes, func(w *Write) bool {
			return w.Key == p.event().Key && w.Version > p.session.Request.Since && w.Before == nil
		})
		if created == nil {
			p.remove()
		}
		return created == nil
	})},
	{"a difference that is taken for a state", SnapshotExact, editEvent(func(p eventRef) bool {
		return p.event().Type == Synced && p.event().Since != 0 && p.index > 0 &&
			isGone(eventRef{p.session, p.index - 1})
	}, func(p eventRef) { p.event().Since = 0 })},
	{"the difference to another state", SnapshotExact, editEvent(func(p eventRef) bool {
		return p.event().Type == Synced && p.event().Since != 0
	}, func(p eventRef) { p.event().Since++ })},
	{"a foreign key in a difference", NoPhantom, editEvent(isGone, func(p eventRef) {
		foreign := *p.event()
		foreign.Key.Name += "x"
		p.insert(foreign)
	})},
	{"deleted object in the snapshot", SnapshotExact, onEvent(func(p eventRef) bool { return p.event().Type == Synced },
		func(m *mutator, p eventRef) bool {
			w := m.deletedWrite(simSelectionOf(p.session), p.event().Version)
			if w == nil {
				return false
			}
			p.insert(ReceivedEvent{
				Type: Added, Key: w.Key, Version: w.Version, Fingerprint: w.After.Fingerprint, Initial: true,
			})
			return true
		})},
	{"stale start", Fresh, onEvent(func(p eventRef) bool {
		return p.event().Type == Synced && p.session.Request.Version == 0 && !p.session.Request.AnyVersion
	}, func(m *mutator, p eventRef) bool {
		w := pickFrom(m, m.history.Writes, func(w *Write) bool { return w.Version > p.event().Version })
		if w == nil {
			return false
		}
		p.session.Opened = w.Acked + 1
		return true
	})},
	{"start before the requested version", Fresh, editEvent(func(p eventRef) bool {
		return p.event().Type == Synced && !p.session.End.Expired
	}, func(p eventRef) {
		p.session.Request.Version, p.session.Request.AnyVersion = p.event().Version+1, false
	})},
	{"start before a version already seen", Fresh, func(m *mutator) bool {
		// The watcher sees a write before it is acknowledged, and then restarts from an
		// older state.
		state := &ObjectState{Fingerprint: 7}
		*m.history = History{
			Writes: []Write{
				{Version: 1, Key: Key{Name: "a"}, After: state, Began: 1, Acked: 2},
				{Version: 2, Key: Key{Name: "b"}, After: state, Began: 3, Acked: 9},
			},
			Sessions: []*Session{
				{
					Watcher: "w", Request: Request{Version: 1}, Opened: 3,
					Events: []ReceivedEvent{{Added, Key{Name: "b"}, 2, false, 7, 4, 0}}, End: End{At: 5, Error: "cut"},
				},
				{Watcher: "w", Request: Request{
					InitialEvents: true, Bookmarks: true,
				}, Opened: 6, Events: []ReceivedEvent{
					{Added, Key{Name: "a"}, 1, true, 7, 7, 0}, {Synced, Key{}, 1, false, 0, 8, 0},
				}},
			},
		}
		return true
	}},
}

// olderWrite returns a write of the given key, at a version below limit, that wrote an object in
// the selection v. It returns nil if there is no such write.
func (m *mutator) olderWrite(v simSelection, key Key, limit listwatch.Version) *Write {
	return pickFrom(m, m.history.Writes, func(w *Write) bool {
		return w.Key == key && w.Version < limit && m.selects(v, w)
	})
}

// deletedWrite returns a write whose object was in selection v after the write, but is no longer in
// v at version now.
func (m *mutator) deletedWrite(v simSelection, now listwatch.Version) *Write {
	last := make(map[Key]*Write)
	for i := range m.history.Writes {
		if w := &m.history.Writes[i]; w.Version <= now {
			last[w.Key] = w
		}
	}
	return pickFrom(m, m.history.Writes, func(w *Write) bool {
		return w.Version < now && m.selects(v, w) && !m.selects(v, last[w.Key])
	})
}

func (m *mutator) selects(v simSelection, w *Write) bool {
	if w.After == nil {
		return false
	}
	o := &simObject{tier: w.After.Labels["tier"]}
	if slices.Contains(w.After.Tags, "odd") {
		o.writeCount = 1
	}
	return v.selects(w.Key, o)
}

var otherMutations = []mutation{
	{"missing object in a list", ListExact, onList(func(l *List) bool { return len(l.Items) > 1 },
		func(_ *mutator, l *List) bool {
			l.Items = l.Items[1:]
			return true
		})},
	{"stale object in a list", ListExact, onList(func(l *List) bool {
		return len(l.Items) > 0 && l.Request.Selection == Selection{}
	}, func(m *mutator, l *List) bool {
		it := &l.Items[m.rand.IntN(len(l.Items))]
		w := m.olderWrite(simSelections[0], it.Key, it.Version)
		if w == nil {
			return false
		}
		it.Version, it.Fingerprint = w.Version, w.After.Fingerprint
		return true
	})},
	{"corrupt object in a list", ListExact, onList(func(l *List) bool { return len(l.Items) > 0 },
		func(_ *mutator, l *List) bool {
			l.Items[0].Fingerprint ^= 2
			return true
		})},
	{"list of another version than requested", ListExact, onList(func(l *List) bool { return l.Request.Exact },
		func(_ *mutator, l *List) bool {
			l.Request.Version--
			return true
		})},
	{"list from the future", ListExact, onList(func(l *List) bool {
		return !l.Request.Exact && l.Watcher == ""
	}, func(_ *mutator, l *List) bool {
		l.Version += farVersion
		return true
	})},
	{"stale list", Fresh, onList(func(l *List) bool {
		return !l.Request.Exact && l.After == Key{}
	}, func(m *mutator, l *List) bool {
		w := pickFrom(m, m.history.Writes, func(w *Write) bool { return w.Version > l.Version })
		if w == nil {
			return false
		}
		l.Began, l.ReceivedAt = w.Acked+1, w.Acked+2
		return true
	})},
	{"watcher stops before the last write", Converged, func(m *mutator) bool {
		_, s := m.pickSession(m.receivesLastWrite)
		if s == nil {
			return false
		}
		last := slices.IndexFunc(s.Events,
			func(f ReceivedEvent) bool { return f.Version >= m.lastSelected(simSelectionOf(s)) })
		s.Events = s.Events[:last]
		return true
	}},
	{"watcher is late", Converged, func(m *mutator) bool {
		_, s := m.pickSession(m.receivesLastWrite)
		if s == nil {
			return false
		}
		for i := range s.Events {
			s.Events[i].ReceivedAt += 2 * time.Hour
		}
		return true
	}},
	{
		"missing object in an informer", InformerExact,
		onInformerState(func(h *InformerState) bool { return len(h.Items) > 0 },
			func(_ *mutator, h *InformerState) { h.Items = h.Items[1:] }),
	},
	{
		"corrupt object in an informer", InformerExact,
		onInformerState(func(h *InformerState) bool { return len(h.Items) > 0 },
			func(_ *mutator, h *InformerState) { h.Items[0].Fingerprint ^= 2 }),
	},
	{"unknown object in an informer", InformerExact, onInformerState(func(*InformerState) bool { return true },
		func(_ *mutator, h *InformerState) {
			h.Items = append(h.Items, Item{Key{Name: "zz"}, farVersion, 1})
		})},
	{
		"handler call with an older version", InformerExact,
		onHandlerCall(func(c *HandlerCall) bool { return c.Type != Added }, func(c *HandlerCall) { c.Version = 1 }),
	},
	{
		"handler call with the wrong type", InformerExact,
		onHandlerCall(func(c *HandlerCall) bool { return c.Type != Added }, func(c *HandlerCall) { c.Type = Added }),
	},
	{
		"handler call for an unknown object", InformerExact,
		onHandlerCall(func(c *HandlerCall) bool { return c.Type == Added }, func(c *HandlerCall) { c.Type = Deleted }),
	},
}

// receivesLastWrite reports whether s is the last session of its watcher and received the
// last write as a change.
func (m *mutator) receivesLastWrite(n int, s *Session) bool {
	for _, later := range m.history.Sessions[n+1:] {
		if later.Watcher == s.Watcher {
			return false
		}
	}
	last := m.lastSelected(simSelectionOf(s))
	i := slices.IndexFunc(s.Events, func(f ReceivedEvent) bool { return f.Version >= last && !f.Initial })
	return i > 0 && (eventRef{s, i}).isChange() && s.Events[i-1].Type != Synced && !s.Events[i-1].Initial &&
		m.noSnapshotAfter(s, last)
}

func (m *mutator) noSnapshotAfter(s *Session, v listwatch.Version) bool {
	return !slices.ContainsFunc(s.Events, func(f ReceivedEvent) bool { return f.Type == Synced && f.Version >= v })
}

// lastSelected returns the version of the last write to the selection v.
func (m *mutator) lastSelected(v simSelection) listwatch.Version {
	var last listwatch.Version
	was := make(map[Key]bool)
	for i := range m.history.Writes {
		w := &m.history.Writes[i]
		is := m.selects(v, w)
		if is || was[w.Key] {
			last = w.Version
		}
		was[w.Key] = is
	}
	return last
}

func onList(fits func(*List) bool, f func(*mutator, *List) bool) func(*mutator) bool {
	return func(m *mutator) bool {
		l := pickFrom(m, m.history.Lists, fits)
		return l != nil && f(m, l)
	}
}

func onInformerState(fits func(*InformerState) bool, f func(*mutator, *InformerState)) func(*mutator) bool {
	return func(m *mutator) bool {
		h := pickFrom(m, m.history.InformerStates, fits)
		if h != nil {
			f(m, h)
		}
		return h != nil
	}
}

func onHandlerCall(fits func(*HandlerCall) bool, f func(*HandlerCall)) func(*mutator) bool {
	return func(m *mutator) bool {
		c := pickFrom(m, m.history.HandlerCalls, fits)
		if c != nil {
			f(c)
		}
		return c != nil
	}
}
