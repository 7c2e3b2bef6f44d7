// Package relay follows a Source and serves it as another Source: one watch of the upstream
// feeds any number of watchers. Versions pass through unchanged, so a client may resume at any
// relay of the same origin, or at the origin itself.
//
//	upstream := &client.Remote{URL: "https://origin.example.com/flags"}
//	flags := relay.Open(upstream, relay.Options{})
//	defer flags.Close()
//	http.Handle("/flags", &watchserver.Server{Source: flags})
//
// Start with [Relay].
//
// # Guarantees
//
// A Relay keeps all promises of [listwatch.Source]. It serves selectors, namespaces, pages and
// exact versions from its own log and never forwards them to the upstream.
//
//   - A read of the newest state contains every write that the origin acknowledged before the
//     read. The relay asks the upstream for its version and waits up to 3 seconds until it has
//     reached that version. Then the read fails with [listwatch.NotYet]. Concurrent reads share
//     the request.
//   - If the upstream no longer has the history that the relay needs, the relay takes over the
//     new state and ends every watch with [listwatch.Expired]. It never derives events from the
//     difference between two states. Watches continue only if the new state has the version
//     that the relay is at.
//   - If the versions of the upstream start over, the relay adopts the new epoch and ends every
//     watch with Expired.
//   - While the upstream is unreachable, watches stay open and reads of any state succeed.
//     [Relay.Health] reports the lag.
//
// # Source files
//
// upstream.go and upstreamwatcher.go are the Source that the relay follows, and backfill.go
// obtains its history. logwriter.go writes the events into the log of an epoch (epoch.go).
// consistentread.go asks the upstream for its version, and probe.go makes the relay reach that
// version when no event or bookmark does. read.go implements the Source. health.go and
// monitor.go report the lag.
package relay
