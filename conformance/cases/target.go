package cases

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// An Ability is what a target can do for a case, or a set of that.
type Ability uint

const (
	// Writes: objects can be written, by [Site.Store].
	Writes Ability = 1 << iota
	// Alone: the collection begins empty, and nobody else writes to it.
	SoleWriter
	// Dense: its versions have no holes, so that the write after N is N+1.
	ConsecutiveVersions
	// Compacts: history can be forgotten, by [Site.Compact].
	Compacts
	// Kubernetes: the collection is at its path in Kubernetes, where objects can be read and written as well.
	KubernetesPaths
	// Spaces: there are namespaces, any number of them, and the URL is that of all.
	Namespaces
	// Fields: spec.phase is a field that a selector may name.
	FieldSelectors
	// Setups: the server can be set up as the case wants it.
	Configurable
	// Replicas: there can be a second server over the same collection, by [Site.Replica].
	Replicas
	// Lives: there can be a second, unrelated collection at the same time, as after a restart that lost everything.
	UnrelatedCollection
	// Drains: the server can be told to end all watches, by [Site.Drain].
	Drains
	// Counts: the server tells how many watches are open, by [Site.Watches].
	CountsWatches
	// Inside: the case reaches into this module's server, so that it can have no other target.
	InProcess
)

var abilityNames = []string{"writes", "alone", "dense", "compacts", "kubernetes", "spaces", "fields", "setups", "replicas", "lives", "drains", "counts", "inside"}

// lacks say in a report that an ability is not there.
var lacks = map[Ability]string{
	Writes:              "nobody can write objects here",
	SoleWriter:          "others may write here as well",
	ConsecutiveVersions: "versions may have holes here",
	Compacts:            "history can't be told to go here",
	KubernetesPaths:     "there are no paths of Kubernetes' API here",
	Namespaces:          "the URL is that of one namespace",
	FieldSelectors:      "there is no field to select by here",
	Configurable:        "the server can't be set up as the case wants it",
	Replicas:            "there is no second server over the same objects",
	UnrelatedCollection: "there is no second collection that is unrelated",
	Drains:              "the server can't be told to end its watches",
	CountsWatches:       "the server does not tell how many watches are open",
	InProcess:           "the case reaches into the server of this module",
}

// lack says what it means that nothing in the set is there. Where nobody can write, nothing else counts, and the same goes for what is
// only inside.
func (a Ability) lack() string {
	switch {
	case a&InProcess != 0:
		return lacks[InProcess]
	case a&Writes != 0:
		return lacks[Writes]
	}
	var all []string
	for i := range abilityNames {
		if a&(1<<i) != 0 {
			all = append(all, lacks[1<<i])
		}
	}
	return strings.Join(all, "; ")
}

// String names what is in the set.
func (a Ability) String() string {
	var names []string
	for i, name := range abilityNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// A Target is a server under test.
type Target struct {
	// Name is short, without spaces: it is part of the names of runs.
	Name string
	// Ways are the names of the ways to reach it that are to be tested; see [Ways]. Nil: all.
	Variants []string
	// Offers is what it can do.
	Abilities Ability
	// Open returns a site for one case, or fails t. It is closed by t.Cleanup.
	Open func(t T, s Setup) *Instance
	// Notes are what a reader of the report must know, such as why a way is not among Ways.
	Notes []string
	// Dialler and Client, where they are not nil, put another client in the place of ours: Dialler that of one transport,
	// Client the one that resumes; it returns nil where there is none.
	TransportClient func(transport.Client) transport.Client
	Client          func(*client.Remote) listwatch.Source
	// Informer, where it is not nil, puts another in the place of our informer.
	Informer func(*informer.Informer[*listwatch.Object]) Cache
	// Patience is how long a case waits for what must come. Zero: 10 s.
	Patience time.Duration
	// Seed is what random cases begin from. Zero: another one each time.
	Seed uint64
	// Bubbles: Open works within a bubble of testing/synctest, where Setup.Fake is set.
	SupportsFakeTime bool
}

// A Cannot is the error of a client under test that has no means to do what a case asks of it. The case is skipped, and this is why.
type MissingAbility string

// Error returns the reason.
func (c MissingAbility) Error() string { return string(c) }

// A Setup is what a case wants of the server otherwise than usual. The zero Setup is what every target has.
type Setup struct {
	Timing        watchserver.Timing
	Limits        watchserver.Limits
	HistoryBytes  int64
	TLS           bool
	Access        Access
	NoCompression bool // nothing is compressed
	// Narrow: connections hold few bytes that are not read yet.
	SmallBuffers bool

	// Fake: the case runs in a bubble, so the site must be in memory.
	FakeTime bool
	// Over is the server's half of the transport that is tested, where the target has several.
	ServerTransport transport.Server
}

// A Site is a server that runs, and a collection behind it.
type Instance struct {
	// URL is where the collection is listed and watched, without a query.
	URL *url.URL
	// Kind is that of the objects, and Root the path of the collection in Kubernetes' API without a namespace; empty where
	// there is no such path.
	Kind, KubernetesPath string
	// Namespace is where objects are that a case means to be in namespace "default"; empty: there.
	Namespace string
	// Network reaches the server, and Header goes with every request, as credentials do.
	Network transport.Network
	Header  http.Header

	// Store writes to the collection; nil: nobody does.
	Store Store
	// Compact makes the server forget the history so far; nil: it can't be told.
	Compact func(context.Context) error
	// Replica opens another server over the same collection; nil: there is none.
	Replica func() *Instance
	// Drain ends all watches in an orderly way; nil: it can't be told.
	Drain func(context.Context) error
	// Certify returns a client certificate of a user, where Access.Certificates is set.
	IssueCertificate func(user string) tls.Certificate
	// Watches returns how many watches are open at this server; nil: it does not tell.
	OpenWatches func() int

	inside   *inside
	shutdown func(context.Context) error // that of the http.Server, where it is one of ours
}

// secure: the site is served over TLS.
func (s *Instance) secure() bool { return s.URL.Scheme == "https" }

// watched returns the URL of the collection with a query.
func (s *Instance) watched(query string) *url.URL {
	u := *s.URL
	u.RawQuery = query
	return &u
}

// path returns where the objects of a namespace are in Kubernetes' API; of all, if it is empty.
func (s *Instance) path(space string) string {
	if space == "" {
		return s.KubernetesPath
	}
	if space == namespace {
		space = s.home()
	}
	i := strings.LastIndexByte(s.KubernetesPath, '/')
	return s.KubernetesPath[:i] + "/namespaces/" + space + s.KubernetesPath[i:]
}

// home is what the namespace "default" of cases is called here.
func (s *Instance) home() string {
	if s.Namespace == "" {
		return namespace
	}
	return s.Namespace
}

// caseSpace is the namespace that a case knows the one of the server by.
func (s *Instance) caseSpace(space string) string {
	if space == s.home() {
		return namespace
	}
	return space
}

// atHome returns e as a case knows it: with its object in namespace "default", if it is in that of the site.
func (s *Instance) atHome(e listwatch.Event) listwatch.Event {
	o := e.Object
	if space := s.caseSpace(o.Key.Namespace); space != o.Key.Namespace {
		key := listwatch.Key{Namespace: space, Name: o.Key.Name}
		e.Object = &listwatch.Object{Key: key, Version: o.Version, Labels: o.Labels, Fields: o.Fields, Data: o.Data}
	}
	return e
}

// A Store writes to the collection of a site. It is safe for concurrent use.
type Store interface {
	// Put creates or replaces an object, given as JSON without a version, and returns its new version. Namespace "default" is that
	// of the site.
	Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error)
	// Delete removes an object and returns the version of that.
	Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error)
}

// inside is what only this module's server gives.
type inside struct {
	source  listwatch.Source
	handler http.Handler
	rotate  func() // makes a secure server show another certificate
}
