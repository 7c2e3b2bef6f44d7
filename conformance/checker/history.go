package checker

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A History is everything that a run recorded. Times in it are since Meta.Started; zero means "not known".
type History struct {
	Meta Meta
	// Writes are in any order.
	Writes []Write
	// Sessions are in the order in which they were opened; their index is their number.
	Sessions []*Session
	Lists    []List
	// Holdings and Changes are what informers hold and tell their handlers.
	InformerStates []InformerState
	HandlerCalls   []HandlerCall
	Faults         []Fault
	Compactions    []Compaction
	Heals          []Heal
}

// Meta says what a history is of, and what it is to be held to.
type Meta struct {
	// Name and Seed say how to make the run again.
	Name string `json:"name,omitempty"`
	Seed uint64 `json:"seed,omitempty"`
	// Started is the zero of all times.
	Started time.Time `json:"started,omitzero"`
	// Base is the store's version before the first write.
	Base listwatch.Version `json:"base,omitempty"`
	// Floors says that History.Floors are all there were, so that an Expired can be judged.
	AllCompactionsRecorded bool `json:"floors,omitempty"`
	// Strict says that a watch from below a floor must be refused; without it a server may still have the history, in a cache.
	MustExpire bool `json:"strict,omitempty"`
	// Shared says that other collections, whose writes are not here, share the store's versions: then nobody knows whether a
	// bookmark is from the future.
	SharedVersions bool `json:"shared,omitempty"`
	// Converge is how long a watcher may take to come to the newest version after a [Heal]. Zero: to the end of the history.
	ConvergenceTimeout time.Duration `json:"converge,omitempty"`
	// Require is what a run must have had to prove anything.
	Requirements Requirements `json:"require,omitzero"`
}

// A Selection is what a watcher or a list sees. It is the name of its projection: equal Selections share one.
type Selection struct {
	// Namespace and Name are the scope; empty: all.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Labels and Fields are selectors in Kubernetes' syntax.
	Labels string `json:"labels,omitempty"`
	Fields string `json:"fields,omitempty"`
	// Judge, where not empty, decides instead of the selectors: what is selected has it in Side.In. So a writer's own
	// judgement can stand against the parser that the server uses.
	Tag string `json:"judge,omitempty"`
}

// SelectionOf returns the selection of q.
func SelectionOf(q listwatch.Query) Selection {
	return Selection{Namespace: q.Namespace, Name: q.Name, Labels: q.Labels.String(), Fields: q.Fields.String()}
}

// A Write is one committed change of one object. Writes of one version are a transaction.
type Write struct {
	Version listwatch.Version `json:"version"`
	Key     Key               `json:"key"`
	// Before is the object as a DELETED event of this write shows it, at Version; nil: there was none.
	Before *ObjectState `json:"before,omitempty"`
	// After is the object as the write left it; nil: it was deleted.
	After *ObjectState `json:"after,omitempty"`
	// Began is before the request, Acked after the answer.
	Began time.Duration `json:"began,omitempty"`
	Acked time.Duration `json:"acked,omitempty"`
}

// A Side is an object on one side of a write, as far as selections and payloads go.
type ObjectState struct {
	Labels map[string]string `json:"labels,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
	// In are the names that [Selection].Judge asks for.
	Tags        []string    `json:"in,omitempty"`
	Fingerprint Fingerprint `json:"payload,omitempty"`
}

// Asked is what a watch or a list asked for.
type Request struct {
	Selection Selection `json:"selection,omitzero"`
	// At is the version that was named; zero: none. Any is resourceVersion "0"; without both it is the newest state.
	Version    listwatch.Version `json:"at,omitempty"`
	AnyVersion bool              `json:"any,omitempty"`
	// Exact is for lists: that very version.
	Exact bool `json:"exact,omitempty"`
	// Initial says that a watch begins with the state, Bookmarks that it allows bookmarks.
	InitialEvents bool `json:"initial,omitempty"`
	Bookmarks     bool `json:"bookmarks,omitempty"`
}

// AskedOf returns what q asks of a watch.
func RequestOf(q listwatch.Query) Request {
	a := Request{
		Selection: SelectionOf(q), AnyVersion: q.Start == listwatch.Any, Exact: q.Match == listwatch.Exact,
		InitialEvents: q.SendsInitialEvents(), Bookmarks: q.Bookmarks,
	}
	if q.Start == listwatch.At {
		a.Version = q.Version
	}
	return a
}

// A Session is one watch, as its watcher asked for it. Sessions of the same Watcher follow each other and are one history to whoever
// reads them.
type Session struct {
	Watcher string  `json:"watcher"`
	Request Request `json:"asked,omitzero"`
	// Transport and Replica say how and where; for people.
	Transport string `json:"transport,omitempty"`
	Replica   string `json:"replica,omitempty"`
	// Opened is before the request; Ready is when Watch returned.
	Opened time.Duration `json:"opened,omitempty"`
	Ready  time.Duration `json:"ready,omitempty"`

	Events []ReceivedEvent `json:"-"`
	// Streams are the connections beneath, where a client resumes by itself; none: the session is one.
	Connections []Connection `json:"-"`
	End         End          `json:"-"`
}

// A Frame is an event as a watcher got it.
type ReceivedEvent struct {
	Type    EventType         `json:"type"`
	Key     Key               `json:"key,omitzero"`
	Version listwatch.Version `json:"version"`
	// Initial marks the frames of the state with which a watch begins. It counts only where the watch did not ask for bookmarks:
	// otherwise the Synced frame says where the state ends.
	Initial     bool          `json:"initial,omitempty"`
	Fingerprint Fingerprint   `json:"payload,omitempty"`
	ReceivedAt  time.Duration `json:"received,omitempty"`
}

// A Stream is one connection of a session.
type Connection struct {
	Transport string `json:"transport,omitempty"`
	// From is the version it resumes from; zero: it begins with the state.
	From   listwatch.Version `json:"from,omitempty"`
	Opened time.Duration     `json:"opened,omitempty"`
	Lost   time.Duration     `json:"lost,omitempty"` // zero: it lived to the end of the session
	Error  string            `json:"why,omitempty"`  // it ended; "EOF": cleanly
}

// An End is how a session ended. The zero End: it was still open, or its watcher closed it.
type End struct {
	At time.Duration `json:"ended,omitempty"`
	// Expired and Remote are those of the error: that the history is gone, and that the server said so.
	Expired bool   `json:"expired,omitempty"`
	Remote  bool   `json:"remote,omitempty"`
	Error   string `json:"why,omitempty"` // "EOF": cleanly; empty: its watcher closed it
}

// An Item is one object of a state.
type Item struct {
	Key         Key               `json:"key"`
	Version     listwatch.Version `json:"version"`
	Fingerprint Fingerprint       `json:"payload,omitempty"`
}

// A List is the answer to a list, or one page of it.
type List struct {
	// Watcher is who asked, if a watch is to continue the list; it may be empty.
	Watcher    string            `json:"watcher,omitempty"`
	Request    Request           `json:"asked,omitzero"`
	Began      time.Duration     `json:"began,omitempty"`
	ReceivedAt time.Duration     `json:"received,omitempty"`
	Version    listwatch.Version `json:"version"`
	Items      []Item            `json:"items,omitempty"`
	// After is the last key of the page before, zero for the first; More says that another page follows.
	After Key  `json:"after,omitzero"`
	More  bool `json:"more,omitempty"`
}

// A Holding is what an informer held at one version.
type InformerState struct {
	Informer  string            `json:"informer"`
	Selection Selection         `json:"selection,omitzero"`
	Version   listwatch.Version `json:"version"`
	Items     []Item            `json:"items,omitempty"`
}

// A Change is one call of an informer's handler.
type HandlerCall struct {
	Informer string `json:"informer"`
	// Type is Added, Modified or Deleted; a resync is a Modified of the same version.
	Type    EventType         `json:"type"`
	Key     Key               `json:"key"`
	Version listwatch.Version `json:"version"`
}

// A Fault is one that bit.
type Fault struct {
	Kind string `json:"kind"`
	// Watcher is whose streams it hit; empty: everybody's.
	Watcher string        `json:"watcher,omitempty"`
	At      time.Duration `json:"began,omitempty"`
	// Gentle says that the streams it ends come to a clean end, as when a server drains.
	Graceful bool `json:"gentle,omitempty"`
}

// A Floor is a compaction: history before a version between Low and High is gone from some time between Began and Done.
type Compaction struct {
	Low   listwatch.Version `json:"low"`
	High  listwatch.Version `json:"high"`
	Began time.Duration     `json:"began,omitempty"`
	Done  time.Duration     `json:"done,omitempty"`
}

// A Heal is when the faults were over, and the newest version by then.
type Heal struct {
	At      time.Duration     `json:"healed"`
	Version listwatch.Version `json:"version"`
}
