package harness

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// Access is what a server asks of its clients. The zero Access lets everybody in who is no foreign page.
type Access struct {
	// Users: whoever shows no credentials is answered 401. There are two users, [Allowed] and [Denied].
	RequireUser bool
	// Certificates: clients may show certificates, those of [Site.Certify], as their credentials. The server is a secure one.
	ClientCertificates bool
	// Origin is that of foreign pages that may use the server; empty: none may.
	AllowedOrigin string
}

// The users that a server knows where Access.Users is set. A user's name is the user's bearer token, too.
const (
	Allowed = "allowed" // may do everything
	Denied  = "denied"  // may do nothing
)

// DialAddress is where to dial.
func (s *Instance) DialAddress() string {
	switch port := s.URL.Port(); {
	case port != "":
		return s.URL.Host
	case s.UsesTLS():
		return net.JoinHostPort(s.URL.Hostname(), "443")
	}
	return net.JoinHostPort(s.URL.Hostname(), "80")
}

// FrequentBookmarks is for cases in real time.
var FrequentBookmarks = Setup{Timing: watchserver.Timing{Bookmark: 5 * time.Millisecond}}

// WithHeader returns h and what goes with every request.
func (s *Instance) WithHeader(h http.Header) http.Header {
	if s.Header == nil {
		return h
	}
	all := s.Header.Clone()
	maps.Copy(all, h)
	return all
}

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

	Internals *Internals
	Shutdown  func(context.Context) error // that of the http.Server, where it is one of ours
}

// UsesTLS: the site is served over TLS.
func (s *Instance) UsesTLS() bool { return s.URL.Scheme == "https" }

// WatchURL returns the URL of the collection with a query.
func (s *Instance) WatchURL(query string) *url.URL {
	u := *s.URL
	u.RawQuery = query
	return &u
}

// ResourcePath returns where the objects of a namespace are in Kubernetes' API; of all, if it is empty.
func (s *Instance) ResourcePath(space string) string {
	if space == "" {
		return s.KubernetesPath
	}
	if space == DefaultNamespace {
		space = s.HomeNamespace()
	}
	i := strings.LastIndexByte(s.KubernetesPath, '/')
	return s.KubernetesPath[:i] + "/namespaces/" + space + s.KubernetesPath[i:]
}

// HomeNamespace is what the namespace "default" of cases is called here.
func (s *Instance) HomeNamespace() string {
	if s.Namespace == "" {
		return DefaultNamespace
	}
	return s.Namespace
}

// CaseNamespace is the namespace that a case knows the one of the server by.
func (s *Instance) CaseNamespace(space string) string {
	if space == s.HomeNamespace() {
		return DefaultNamespace
	}
	return space
}

// InCaseNamespace returns e as a case knows it: with its object in namespace "default", if it is in that of the site.
func (s *Instance) InCaseNamespace(e listwatch.Event) listwatch.Event {
	o := e.Object
	if space := s.CaseNamespace(o.Key.Namespace); space != o.Key.Namespace {
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

// Internals is what only this module's server gives.
type Internals struct {
	Source            listwatch.Source
	Handler           http.Handler
	RotateCertificate func() // makes a secure server show another certificate
}
