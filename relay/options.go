package relay

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/persist"
)

// Options configure a Relay. The zero Options are usable.
type Options struct {
	// History limits the history that the relay keeps.
	History listwatch.Retention
	// BackfillVersions limits the history that the relay reads at its start, so that clients of an
	// earlier relay can resume. The history begins this number of versions before the newest
	// version, or at the oldest version that the upstream still has. Versions count the writes of
	// the whole database, so this is an upper bound on the number of events. The relay keeps the
	// newest of these events that fit into History.Bytes. If zero,
	// [DefaultBackfillVersions] is used. A negative value disables the backfill.
	BackfillVersions int
	// Fields are the paths that a field selector may use in addition to metadata.name and
	// metadata.namespace. If nil, the paths that the upstream describes are used. Their values
	// are read from the JSON of the objects, as in [watchcache.New].
	Fields []string
	// FieldRules holds rules for the values of some Fields, by path. If Fields is nil, it has no
	// effect.
	FieldRules map[string]listwatch.FieldRule
	// Projection reduces the objects that the relay requests and keeps. A request without a
	// projection receives the reduced objects. The relay refuses a request for other members, and a
	// selector that uses labels or fields that the reduced objects lack.
	Projection listwatch.Projection
	// ProbeSource is a Source of the upstream's collection. Its watches must end or send a bookmark
	// within two seconds. The relay opens a short watch of ProbeSource if a reader waits for a
	// version that no event of the collection has. If nil and the upstream is a [client.Remote],
	// connections of the Remote with a short timeoutSeconds are used. If nil and the upstream is
	// another Source, such reads pass through to it until the next event or bookmark.
	//
	// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
	ProbeSource listwatch.Source
	// ProbeWait is the time that a watch with more than 100 initial events, or more than 64 KiB of
	// them, waits for a probe if the relay lacks a version that the watch requires. The probe takes
	// about two seconds, but spares the upstream a list of all objects for each of these watches
	// while other collections change. If zero or negative, or if probes fail, the initial events
	// come from the upstream as soon as for other reads. A watch waits at most 3 seconds. A list of
	// all objects waits, too, if the upstream would need at least half of ProbeWait for it.
	ProbeWait time.Duration
	// CheckInterval is the time between two requests for the upstream's version, from which
	// [Health.Lag] is computed. If zero, [DefaultCheckInterval] is used. If negative, the
	// relay requests the version only for reads of the newest state.
	CheckInterval time.Duration
	// Backoff configures the delay between two watches of the upstream. If zero and the upstream
	// is a [client.Remote], the Backoff of the Remote is used.
	//
	// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
	Backoff listwatch.Backoff
	// Persist keeps a copy of the state and the history in a file, if the upstream identifies its
	// states. After a restart the relay serves the copy at once, without a backfill, and requests
	// the changes since.
	Persist persist.File
	// Trace has hooks for events that readers do not see. It may be nil.
	Trace *Trace
}

// The defaults of [Options].
const (
	DefaultBackfillVersions = 200_000
	DefaultCheckInterval    = 10 * time.Second
)
