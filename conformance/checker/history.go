package checker

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// A History is everything that a run recorded. Its times are durations since Meta.Started;
// zero means unknown.
type History struct {
	Meta Meta
	// Writes may be in any order.
	Writes []Write
	// Sessions are in the order in which they were opened. Their index is their number.
	Sessions []*Session
	Lists    []List
	// InformerStates and HandlerCalls record the content of informers and the calls of
	// their handlers.
	InformerStates []InformerState
	HandlerCalls   []HandlerCall
	Faults         []Fault
	Compactions    []Compaction
	Heals          []Heal
}

// each passes every entry of the file, except the header, to add.
func (h *History) each(add func(Entry) error) error {
	var first error
	put := func(e Entry) {
		if first == nil {
			first = add(e)
		}
	}
	for i := range h.Writes {
		put(Entry{Write: &h.Writes[i]})
	}
	for n, s := range h.Sessions {
		put(Entry{Session: &SessionEntry{n, *s}})
		for i := range s.Events {
			put(Entry{Event: &EventEntry{n, s.Events[i]}})
		}
		for i := range s.Connections {
			put(Entry{Connection: &ConnectionEntry{n, s.Connections[i]}})
		}
		if s.End != (End{}) {
			put(Entry{End: &EndEntry{n, s.End}})
		}
	}
	for i := range h.Lists {
		put(Entry{List: &h.Lists[i]})
	}
	for i := range h.InformerStates {
		put(Entry{InformerState: &h.InformerStates[i]})
	}
	for i := range h.HandlerCalls {
		put(Entry{HandlerCall: &h.HandlerCalls[i]})
	}
	for i := range h.Faults {
		put(Entry{Fault: &h.Faults[i]})
	}
	for i := range h.Compactions {
		put(Entry{Compaction: &h.Compactions[i]})
	}
	for i := range h.Heals {
		put(Entry{Heal: &h.Heals[i]})
	}
	return first
}

// add adds one line to h. It ignores lines of unknown types.
func (h *History) add(e Entry) error {
	switch {
	case e.Write != nil:
		h.Writes = append(h.Writes, *e.Write)
	case e.Session != nil:
		if e.Session.Number != len(h.Sessions) {
			return corruptEntry(fmt.Sprintf("got session %d, want session %d: sessions must be numbered in order",
				e.Session.Number, len(h.Sessions)))
		}
		s := e.Session.Session
		h.Sessions = append(h.Sessions, &s)
	case e.Event != nil:
		return h.addToSession(e.Event.SessionNumber,
			func(s *Session) { s.Events = append(s.Events, e.Event.ReceivedEvent) })
	case e.Connection != nil:
		return h.addToSession(e.Connection.SessionNumber, func(s *Session) {
			s.Connections = append(s.Connections, e.Connection.Connection)
		})
	case e.End != nil:
		return h.addToSession(e.End.SessionNumber, func(s *Session) { s.End = e.End.End })
	case e.List != nil:
		h.Lists = append(h.Lists, *e.List)
	case e.InformerState != nil:
		h.InformerStates = append(h.InformerStates, *e.InformerState)
	case e.HandlerCall != nil:
		h.HandlerCalls = append(h.HandlerCalls, *e.HandlerCall)
	case e.Fault != nil:
		h.Faults = append(h.Faults, *e.Fault)
	case e.Compaction != nil:
		h.Compactions = append(h.Compactions, *e.Compaction)
	case e.Heal != nil:
		h.Heals = append(h.Heals, *e.Heal)
	}
	return nil
}

func (h *History) addToSession(number int, add func(*Session)) error {
	if number < 0 || number >= len(h.Sessions) {
		return corruptEntry(fmt.Sprintf("session %d does not exist", number))
	}
	add(h.Sessions[number])
	return nil
}

// Meta describes a history and the requirements that it must meet.
type Meta struct {
	// Name and Seed identify the run, so that it can be repeated.
	Name string `json:"name,omitempty"`
	Seed uint64 `json:"seed,omitempty"`
	// Started is the time to which all durations are relative.
	Started time.Time `json:"started,omitzero"`
	// Base is the version of the store before the first write.
	Base listwatch.Version `json:"base,omitempty"`
	// AllCompactionsRecorded reports that History.Compactions is complete. Otherwise the
	// checker does not judge whether an Expired was justified.
	AllCompactionsRecorded bool `json:"allCompactionsRecorded,omitempty"`
	// MustExpire requires that a watch from below the floor gets Expired. If it is false, a
	// server may still serve such a watch, for example from a cache.
	MustExpire bool `json:"mustExpire,omitempty"`
	// SharedVersions reports that other collections, whose writes are not recorded, use the
	// same sequence of versions. Then the checker cannot detect bookmarks with versions
	// from the future.
	SharedVersions bool `json:"sharedVersions,omitempty"`
	// ConvergenceTimeout is the time within which a watcher must reach the newest version after
	// a [Heal]. If zero, the watcher must do so before the history ends.
	ConvergenceTimeout time.Duration `json:"convergenceTimeout,omitempty"`
	// Requirements are the minimum counts that make the run meaningful.
	Requirements Requirements `json:"requirements,omitzero"`
}

// A Selection is the part of a collection that a watch or a list covers.
type Selection struct {
	// Namespace and Name restrict the selection to a namespace and an object. If empty,
	// they match all.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Labels and Fields are selectors in Kubernetes' syntax. If empty, they match all.
	Labels string `json:"labels,omitempty"`
	Fields string `json:"fields,omitempty"`
	// Tag, if not empty, replaces the selectors: the selection contains the objects whose
	// ObjectState.Tags contain Tag. A test that evaluates selectors with its own code can
	// thereby check the selectors of the server.
	Tag string `json:"tag,omitempty"`
}

// A Write is one committed change of one object. Several writes with the same version are a
// transaction.
type Write struct {
	Version listwatch.Version `json:"version"`
	Key     Key               `json:"key"`
	// Before is the previous state of the object, but with the version of this write, as a
	// DELETED event contains it. If nil, the write created the object.
	Before *ObjectState `json:"before,omitempty"`
	// After is the new state of the object. If nil, the write deleted it.
	After *ObjectState `json:"after,omitempty"`
	// Began is the time just before the request was sent. Acked is the time just after
	// the response was received.
	Began time.Duration `json:"began,omitempty"`
	Acked time.Duration `json:"acked,omitempty"`
}

// An ObjectState is the part of an object's state that the checker compares.
type ObjectState struct {
	Labels map[string]string `json:"labels,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
	// Tags are the values of [Selection].Tag that select the object.
	Tags        []string    `json:"tags,omitempty"`
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
}

// A Request describes the parameters of a watch or a list.
type Request struct {
	Selection Selection `json:"selection,omitzero"`
	// Version is the requested resourceVersion. AnyVersion means resourceVersion "0". If
	// both are zero, the newest state was requested.
	Version    listwatch.Version `json:"version,omitempty"`
	AnyVersion bool              `json:"anyVersion,omitempty"`
	// Exact means that a list must return the state at exactly Version.
	Exact bool `json:"exact,omitempty"`
	// InitialEvents means that a watch starts with the current state as ADDED events. Bookmarks
	// means that the watch may contain bookmarks.
	InitialEvents bool `json:"initialEvents,omitempty"`
	Bookmarks     bool `json:"bookmarks,omitempty"`
	// If Since is not zero, the watcher has the state at that version, and accepts the difference
	// to it as initial events.
	Since listwatch.Version `json:"since,omitempty"`
}

// RequestOf returns the request of a watch with query q.
func RequestOf(q listwatch.Query) Request {
	a := Request{
		Selection: Selection{
			Namespace: q.Namespace, Name: q.Name, Labels: q.Labels.String(), Fields: q.Fields.String(),
		},
		AnyVersion: q.Start == listwatch.StartAny, Exact: q.Match == listwatch.MatchExact,
		InitialEvents: q.SendsInitialEvents(), Bookmarks: q.Bookmarks, Since: q.Since.Version,
	}
	if q.Start == listwatch.StartAt {
		a.Version = q.Version
	}
	return a
}

// A Session is one watch as its watcher requested it. All sessions with the same Watcher are
// checked together.
type Session struct {
	Watcher string  `json:"watcher"`
	Request Request `json:"request,omitzero"`
	// Transport and Replica only appear in reports. The checker does not interpret them.
	Transport string `json:"transport,omitempty"`
	Replica   string `json:"replica,omitempty"`
	// Opened is the time just before the request was sent. Ready is the time when Watch
	// returned.
	Opened time.Duration `json:"opened,omitempty"`
	Ready  time.Duration `json:"ready,omitempty"`

	Events []ReceivedEvent `json:"-"`
	// Connections are the network connections of the session. If there are none, the
	// checker assumes a single connection that lasted as long as the session.
	Connections []Connection `json:"-"`
	End         End          `json:"-"`
}

// A ReceivedEvent is an event as a watcher received it.
type ReceivedEvent struct {
	Type    EventType         `json:"type"`
	Key     Key               `json:"key,omitzero"`
	Version listwatch.Version `json:"version"`
	// Initial marks initial events. It is only used for a watch without bookmarks;
	// otherwise the SYNCED event marks the end of the initial events.
	Initial     bool          `json:"initial,omitempty"`
	Fingerprint Fingerprint   `json:"fingerprint,omitempty"`
	ReceivedAt  time.Duration `json:"received,omitempty"`
	// If Since is not zero, this SYNCED event ends a difference to the state at that version.
	Since listwatch.Version `json:"since,omitempty"`
}

// A Connection is one network connection of a session.
type Connection struct {
	Transport string `json:"transport,omitempty"`
	// From is the version from which the connection resumes. If zero, it starts with the
	// current state.
	From   listwatch.Version `json:"from,omitempty"`
	Opened time.Duration     `json:"opened,omitempty"`
	// Lost is zero if the connection lasted until the session ended.
	Lost  time.Duration `json:"lost,omitempty"`
	Error string        `json:"error,omitempty"` // "EOF" means a clean end
}

// An End describes how a session ended. The zero End means that the session was still open,
// or that its watcher closed it.
type End struct {
	At time.Duration `json:"at,omitempty"`
	// Expired means that the error had code Expired. Remote means that the server sent the error.
	Expired bool `json:"expired,omitempty"`
	Remote  bool `json:"remote,omitempty"`
	// Error is "EOF" after a clean end. It is empty if the watcher closed the session.
	Error string `json:"error,omitempty"`
}

// An Item is one object in a list, in initial events or in an informer.
type Item struct {
	Key         Key               `json:"key"`
	Version     listwatch.Version `json:"version"`
	Fingerprint Fingerprint       `json:"fingerprint,omitempty"`
}

// A List is the response to a list request, or one page of it.
type List struct {
	// Watcher names the watcher that continues from this list. It may be empty.
	Watcher    string            `json:"watcher,omitempty"`
	Request    Request           `json:"request,omitzero"`
	Began      time.Duration     `json:"began,omitempty"`
	ReceivedAt time.Duration     `json:"received,omitempty"`
	Version    listwatch.Version `json:"version"`
	Items      []Item            `json:"items,omitempty"`
	// After is the last key of the previous page, or zero for the first page. More reports
	// that another page follows.
	After Key  `json:"after,omitzero"`
	More  bool `json:"more,omitempty"`
}

// An InformerState is the content of an informer at one version.
type InformerState struct {
	Informer  string            `json:"informer"`
	Selection Selection         `json:"selection,omitzero"`
	Version   listwatch.Version `json:"version"`
	Items     []Item            `json:"items,omitempty"`
}

// A HandlerCall is one call of an informer's event handler.
type HandlerCall struct {
	Informer string `json:"informer"`
	// Type is Added, Modified or Deleted. A resync is a Modified with an unchanged version.
	Type    EventType         `json:"type"`
	Key     Key               `json:"key"`
	Version listwatch.Version `json:"version"`
}

// A Fault is an injected fault that took effect.
type Fault struct {
	Kind string `json:"kind"`
	// Watcher names the watcher whose connections the fault affected. If empty, the fault affected
	// all watchers.
	Watcher string        `json:"watcher,omitempty"`
	At      time.Duration `json:"at,omitempty"`
	// Graceful means that the fault ends streams cleanly, as a draining server does.
	Graceful bool `json:"graceful,omitempty"`
}

// A Compaction discards history. Between Began and Done, the floor moves to a version
// between Low and High.
type Compaction struct {
	Low   listwatch.Version `json:"low"`
	High  listwatch.Version `json:"high"`
	Began time.Duration     `json:"began,omitempty"`
	Done  time.Duration     `json:"done,omitempty"`
}

// A Heal marks the time when all faults ended, and the newest version at that time.
type Heal struct {
	At      time.Duration     `json:"at"`
	Version listwatch.Version `json:"version"`
}
