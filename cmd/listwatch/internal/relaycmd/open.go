package relaycmd

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchserver"
)

// A relaySpec describes the relay of a collection.
type relaySpec struct {
	name     string
	below    string   // the path of the collection below the upstream's URL
	fields   []string // see [relay.Options.Fields]
	rules    map[string]listwatch.FieldRule
	resource watchserver.Resource
	history  listwatch.Retention
	trace    relay.Trace // hooks to call in addition to those that log and measure
	client   *client.Trace
	encoding string           // the name for logs and metrics; empty for JSON
	framings []framing.Framer // see [client.Remote]
	// probeWait is for the options of the relay.
	probeWait time.Duration
	// removable is true if the relay ends when the upstream removes the resource. The absence of
	// the resource is then not a failure.
	removable bool
}

// specOf returns the description of a relay of r. Below the upstream's URL, the relay has the path
// of r.
func (o *relayOptions) specOf(r kubeapi.Resource) relaySpec {
	return relaySpec{
		name: r.QualifiedName(), below: r.Path(""), fields: r.Fields, rules: r.FieldRules(),
		history:  o.history.Retention(),
		resource: watchserver.Resource{Group: r.Group, Version: r.Version, Name: r.Plural},
	}
}

// checkInterval returns the interval at which a relay checks its lag. It is well below
// maxBehind, so that a healthy relay is always ready.
func checkInterval(maxBehind time.Duration) time.Duration {
	if maxBehind <= 0 {
		return relay.DefaultCheckInterval
	}
	return min(relay.DefaultCheckInterval, max(maxBehind/5, 100*time.Millisecond))
}

// trace returns hooks that log what happens to a relay, and then call the hooks of spec.
func (s *relayServer) trace(spec relaySpec) *relay.Trace {
	log := s.Log.With("relay", spec.name)
	if spec.encoding != "" {
		log = log.With("encoding", spec.encoding)
	}
	var again atomic.Bool
	return &relay.Trace{
		Replaced: func(v listwatch.Version, objects int, why string) {
			if spec.trace.Replaced != nil {
				defer spec.trace.Replaced(v, objects, why)
			}
			switch isFirst := !again.Swap(true); {
			case why == "saved":
				log.Info("serving the saved copy", "version", v, "objects", objects)
			case isFirst:
				log.Info("fetched the state", "version", v, "objects", objects)
			default:
				log.Warn("fetched a new state; all watches have expired",
					"version", v, "objects", objects, "why", why)
			}
		},
		Patched: func(since, v listwatch.Version) {
			log.Warn("fetched the difference to a new state; all watches have expired", "version", v, "since", since)
		},
		UpstreamLost: func(err error, wait time.Duration, again bool) {
			if spec.trace.UpstreamLost != nil {
				defer spec.trace.UpstreamLost(err, wait, again)
			}
			report, text := log.Warn, "lost the watch of the upstream"
			switch {
			case err == io.EOF: // servers end each watch after some time
				report = log.Debug
			case spec.removable && listwatch.CodeOf(err) == listwatch.NotFound:
				report, text = log.Info, "the upstream does not serve the resource; its cache is dropped unless that changes"
			}
			report(text, "error", cli.OneLine(err), "retry in", wait.Round(time.Millisecond), "relist", again)
		},
		Probed: func(err error) {
			if err == nil {
				log.Info("the upstream can be probed again")
				return
			}
			log.Warn("cannot probe the upstream, so reads of the newest state pass through until an event arrives",
				"reason", cli.OneLine(err))
		},
		Saved: func(s persist.Saved) {
			if s.Err != nil {
				log.Warn("cannot use, save or remove the copy", "error", cli.OneLine(s.Err))
				return
			}
			log.Debug("saved or removed the copy", "version", s.Version, "objects", s.Objects, "took", s.Took)
		},
		Checked: func(s relay.Health) {
			log.Debug("checked", "version", s.Version, "upstream", s.UpstreamVersion, "behind", s.Lag, "watchers",
				s.Watchers, "error", s.Err)
		},
	}
}
