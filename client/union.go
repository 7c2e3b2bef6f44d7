package client

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/watchcache"
)

// A Union follows several collections of a server over one connection, and keeps a copy of their
// objects. It has one Source for each collection. Any number of informers can follow a Source. A
// Union must not be copied.
type Union struct {
	// Remote sends the requests. Set its fields, except URL, before Run.
	Remote Remote
	// Conflate lets the watch skip states of objects that are out of date; see
	// [listwatch.Query.Conflate]. The Sources then may lack newer states of some objects, until
	// other events or a bookmark follow. It must be set before Run.
	Conflate time.Duration

	members []*unionMember // immutable
}

// NewUnion returns a Union of the collections at the relative URLs parts, such as /api/v1/nodes and
// /api/v1/pods?labelSelector=app%3Dweb. rawURL is the URL at which the server serves unions, such
// as /watch of listwatch serve.
func NewUnion(rawURL string, parts ...string) *Union {
	u, separator := new(Union), "?"
	if strings.Contains(rawURL, "?") {
		separator = "&"
	}
	for _, part := range parts {
		rawURL += separator + "of=" + url.QueryEscape(part)
		separator = "&"
		m := new(unionMember)
		m.cache.Store(watchcache.New(listwatch.Description{}, watchcache.Options{Verbatim: true}))
		u.members = append(u.members, m)
	}
	u.Remote.URL = rawURL
	return u
}

// Sources returns a Source for each part, in the order of NewUnion. Until the first state has
// arrived, their readers wait up to 3 seconds and then fail with [listwatch.Unavailable]. Field
// selectors may only name metadata.name and metadata.namespace. If the history of the server is
// lost, the watches of all Sources are [listwatch.Expired].
func (u *Union) Sources() []listwatch.Source {
	all := make([]listwatch.Source, len(u.members))
	for i, m := range u.members {
		all[i] = m
	}
	return all
}

// Run follows the collections until ctx ends, and returns the error of ctx. Remote.Trace observes
// the failures, from which Run recovers. Call it once. Remote.Framings must be framings of JSON.
func (u *Union) Run(ctx context.Context) error {
	if err := u.Remote.Describe().RequireJSON("a client.Union"); err != nil {
		return err
	}
	source, policy := reflector.Direct(&u.Remote)
	f := &reflector.Reflector{Source: source, Policy: policy, Sink: &unionSink{union: u}, PageSize: -1}
	f.Query.Conflate, f.Differences = u.Conflate, true
	err := f.Run(ctx)
	for _, m := range u.members {
		m.cache.Load().Fail(nil)
	}
	return err
}

// A unionMember is the Source of one collection.
type unionMember struct {
	// cache is replaced when the versions of the server have started over.
	cache       atomic.Pointer[watchcache.Cache]
	description atomic.Pointer[listwatch.Description] // nil before the first state
}

// Describe implements [listwatch.Describer].
func (m *unionMember) Describe() listwatch.Description {
	if d := m.description.Load(); d != nil {
		return *d
	}
	return m.cache.Load().Describe()
}

// List implements [listwatch.Source].
func (m *unionMember) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return m.cache.Load().List(ctx, q)
}

// Watch implements [listwatch.Source].
func (m *unionMember) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return m.cache.Load().Watch(ctx, q)
}

func (m *unionMember) replace(objects []*listwatch.Object, v listwatch.Version) error {
	c := m.cache.Load()
	if v >= c.Version() {
		return c.Replace(objects, v)
	}
	next := watchcache.New(listwatch.Description{}, watchcache.Options{Verbatim: true})
	if err := next.Replace(objects, v); err != nil {
		return err
	}
	m.cache.Store(next)
	c.Fail(&listwatch.Error{
		Code: listwatch.Expired, Op: "watch", Message: "the versions of the server have started over",
	})
	return nil
}

// A unionSink distributes the events of a union to its members.
type unionSink struct {
	union   *Union
	members map[objectType]*unionMember // nil before the first state
	initial []listwatch.Event           // the initial events so far
}

// An objectType is the type of an object. It identifies the member that the object belongs to.
type objectType struct{ apiVersion, kind string }

func typeOf(o *listwatch.Object) (t objectType, err error) {
	if t.apiVersion, err = rawjson.String(rawjson.Lookup(o.Data, "apiVersion")); err == nil {
		t.kind, err = rawjson.String(rawjson.Lookup(o.Data, "kind"))
	}
	return t, err
}

// Begin implements [reflector.Sink].
func (s *unionSink) Begin(string) { s.initial = nil }

// Take implements [reflector.Sink].
func (s *unionSink) Take(events []listwatch.Event) error {
	for _, e := range events {
		if err := s.take(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *unionSink) take(e listwatch.Event) error {
	switch e.Type {
	case listwatch.Synced:
		return s.replace(e)
	case listwatch.Bookmark:
		for _, m := range s.union.members {
			m.cache.Load().Advance(e.Version)
		}
		return nil
	}
	if e.Initial {
		s.initial = append(s.initial, e)
		return nil
	}
	m, err := s.memberOf(e.Object)
	if err != nil {
		return err
	}
	change := watchcache.Change{Version: e.Version, Key: e.Object.Key}
	if e.Type != listwatch.Deleted {
		change.Object = e.Object
	}
	return m.cache.Load().Apply(change)
}

// replace sets the states of all members. It is called when the initial events are complete,
// because the types of the members are not known before.
func (s *unionSink) replace(synced listwatch.Event) error {
	if parts := synced.Parts(); len(parts) == len(s.union.members) {
		s.members = make(map[objectType]*unionMember)
		for i, d := range parts {
			s.members[objectType{d.APIVersion, d.Kind}] = s.union.members[i]
			s.union.members[i].description.Store(&d)
		}
	} else if parts != nil || s.members == nil { // a list does not name the parts
		return &listwatch.Error{
			Code: listwatch.Unsupported, Op: "watch",
			Message: "the server does not serve these collections as one watch",
		}
	}
	states, err := s.states(synced)
	if err != nil {
		return err
	}
	for _, m := range s.members {
		if err := m.replace(states[m], synced.Version); err != nil {
			return err
		}
	}
	s.initial = nil
	return nil
}

// states returns the objects of each member at the end of the initial events. synced is the event
// that ended them.
func (s *unionSink) states(synced listwatch.Event) (map[*unionMember][]*listwatch.Object, error) {
	states := make(map[*unionMember][]*listwatch.Object)
	changed := make(map[*unionMember]map[listwatch.Key]bool)
	for _, m := range s.members {
		changed[m] = make(map[listwatch.Key]bool)
	}
	for _, e := range s.initial {
		m, err := s.memberOf(e.Object)
		if err != nil {
			return nil, err
		}
		if changed[m][e.Object.Key] = true; e.Type != listwatch.Deleted {
			states[m] = append(states[m], e.Object)
		}
	}
	if _, isDifference := synced.Since(); !isDifference {
		return states, nil
	}
	for _, m := range s.members {
		for _, o := range m.cache.Load().Objects() {
			if !changed[m][o.Key] {
				states[m] = append(states[m], o)
			}
		}
	}
	return states, nil
}

// memberOf returns the member to which o belongs.
func (s *unionSink) memberOf(o *listwatch.Object) (*unionMember, error) {
	t, err := typeOf(o)
	if err != nil {
		return nil, err
	}
	m := s.members[t]
	if m == nil {
		return nil, &listwatch.Error{
			Code: listwatch.Corrupt, Op: "watch",
			Message: "received an object of type " + t.apiVersion + " " + t.kind +
				", which is the type of no collection",
		}
	}
	return m, nil
}
