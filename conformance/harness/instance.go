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
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// Access is the access control of a server. The zero Access accepts every client except
// pages of other origins.
type Access struct {
	// RequireUser rejects requests without credentials with status 401. The server knows
	// the users [Allowed] and [Denied].
	RequireUser bool
	// Lifetime is the time after which the credentials of [Allowed] expire, counted from the
	// request that presents them. If zero, they do not expire.
	Lifetime time.Duration
	// ClientCertificates lets clients authenticate with certificates from
	// [Instance.IssueCertificate]. The server then uses TLS.
	ClientCertificates bool
	// AllowedOrigin is the origin whose pages may use the server in addition to the
	// server's own origin. If empty, no other origin may.
	AllowedOrigin string
}

// These are the users of a server if Access.RequireUser is set. The bearer token of a user is the
// user's name.
const (
	Allowed = "allowed" // may do everything
	Denied  = "denied"  // may do nothing
)

// DialAddress returns the host and port of the server.
func (i *Instance) DialAddress() string {
	switch port := i.URL.Port(); {
	case port != "":
		return i.URL.Host
	case i.UsesTLS():
		return net.JoinHostPort(i.URL.Hostname(), "443")
	}
	return net.JoinHostPort(i.URL.Hostname(), "80")
}

// BookmarksOften is a setup for cases in real time that wait for bookmarks. A target with the
// ability [FrequentBookmarks] supports it.
var BookmarksOften = Setup{Timing: watchserver.Timing{Bookmark: 5 * time.Millisecond}}

// WithHeader returns h with the headers that every request to i needs. Values in h take
// precedence.
func (i *Instance) WithHeader(h http.Header) http.Header {
	if i.Header == nil {
		return h
	}
	all := i.Header.Clone()
	maps.Copy(all, h)
	return all
}

// A Setup is the server configuration that a case requires. Every target supports the zero
// Setup.
type Setup struct {
	Timing       watchserver.Timing
	Limits       watchserver.Limits
	HistoryBytes int64
	// TTL is the time after which an object ends if it is not written. If zero, objects do not end.
	TTL           time.Duration
	TLS           bool
	Access        Access
	NoCompression bool
	// SharedCompression is the value of the server's field [watchserver.Server.SharedCompression].
	SharedCompression watchserver.SharedCompression
	// SmallBuffers limits the socket buffers, so that the server is blocked after a few bytes if
	// the client does not read.
	SmallBuffers bool

	// FakeTime means that the case runs in a synctest bubble, so that the instance must use
	// connections in memory.
	FakeTime bool
	// ServerTransport is the server side of the transport under test.
	ServerTransport transport.Server
	// HTTP2 configures HTTP/2.
	HTTP2 h2.Config
}

// An Instance is a running server with its collection.
type Instance struct {
	// URL is the URL for lists and watches of the collection, without a query.
	URL *url.URL
	// Kind is the kind of the objects. KubernetesPath is the path of the collection in the
	// Kubernetes API, without a namespace. If the server has no such path, KubernetesPath is empty.
	Kind, KubernetesPath string
	// Namespace is the server's namespace for objects that cases put into namespace
	// "default". If empty, the server uses "default" too.
	Namespace string
	// Network connects to the server. Header is sent with every request; it holds
	// credentials, for example.
	Network transport.Network
	Header  http.Header

	// Store writes to the collection. It is nil if the target does not have the ability
	// Writes.
	Store Store
	// TTL is the time after which the server ends objects. It may differ from [Setup.TTL].
	TTL time.Duration
	// Union is nil if the server does not serve several collections as one watch.
	Union *Union
	// Compact drops the history so far. It is nil without the ability Compacts.
	Compact func(context.Context) error
	// CompactEndsWatches reports that Compact also ends all watches, because it restarts the
	// server.
	CompactEndsWatches bool
	// Restart restarts the server with the objects that it had. If it is nil, a new collection
	// stands for a server that lost its objects; see [Env.RestartServer].
	Restart func(context.Context) error
	// Replica starts another server for the same collection. It is nil without the ability
	// Replicas.
	Replica func() *Instance
	// Drain ends all watches in an orderly way. It is nil without the ability Drains.
	Drain func(context.Context) error
	// IssueCertificate returns a client certificate for a user. It is set if
	// Access.ClientCertificates is set.
	IssueCertificate func(user string) tls.Certificate
	// OpenWatches returns the number of open watches of this server. It is nil without the
	// ability CountsWatches.
	OpenWatches func() int

	Internals *Internals
	Shutdown  func(context.Context) error // shuts down the http.Server, if the suite started it
}

// A Union is an endpoint that serves several collections as one watch.
type Union struct {
	// URL is the URL of unions, without a query.
	URL *url.URL
	// Parts are the relative URLs of two collections in one database: the collection of the
	// Instance and a second collection.
	Parts [2]string
	// Second writes to the second collection.
	Second Store
}

// UsesTLS reports whether the server uses TLS.
func (i *Instance) UsesTLS() bool { return i.URL.Scheme == "https" }

// WatchURL returns the URL of the collection with a query.
func (i *Instance) WatchURL(query string) *url.URL {
	u := *i.URL
	u.RawQuery = query
	return &u
}

// ResourcePath returns the Kubernetes API path of the objects in a namespace, or of all
// objects if the namespace is empty.
func (i *Instance) ResourcePath(namespace string) string {
	if namespace == "" {
		return i.KubernetesPath
	}
	if namespace == DefaultNamespace {
		namespace = i.HomeNamespace()
	}
	last := strings.LastIndexByte(i.KubernetesPath, '/')
	return i.KubernetesPath[:last] + "/namespaces/" + namespace + i.KubernetesPath[last:]
}

// HomeNamespace returns the server's namespace for objects that cases put into "default".
func (i *Instance) HomeNamespace() string {
	if i.Namespace == "" {
		return DefaultNamespace
	}
	return i.Namespace
}

// CaseNamespace is the inverse of HomeNamespace: it converts the server's name of a namespace to
// the name that cases use.
func (i *Instance) CaseNamespace(namespace string) string {
	if namespace == i.HomeNamespace() {
		return DefaultNamespace
	}
	return namespace
}

// InCaseNamespace returns e with its object moved to the namespace that cases use for it.
func (i *Instance) InCaseNamespace(e listwatch.Event) listwatch.Event {
	o := e.Object
	if namespace := i.CaseNamespace(o.Key.Namespace); namespace != o.Key.Namespace {
		key := listwatch.Key{Namespace: namespace, Name: o.Key.Name}
		e.Object = &listwatch.Object{Key: key, Version: o.Version, Labels: o.Labels, Fields: o.Fields, Data: o.Data}
	}
	return e
}

// A Store writes to the collection of an instance. It is safe for concurrent use.
type Store interface {
	// Put creates or replaces an object, given as JSON without a version, and returns its new
	// version. Namespace "default" stands for the result of [Instance.HomeNamespace].
	Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error)
	// Delete deletes an object and returns the version of the deletion.
	Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error)
}

// Internals holds parts of this module's server that other servers do not have.
type Internals struct {
	Source            listwatch.Source
	Handler           http.Handler
	RotateCertificate func() // replaces the certificate of a TLS server
}

// DefaultNamespace is the namespace of objects whose names contain no namespace. The server may use
// another name for this namespace; see [Instance.Namespace].
const DefaultNamespace = "default"
