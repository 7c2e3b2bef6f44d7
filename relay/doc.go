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
// A Relay gives all guarantees of [listwatch.Source]. If its own log has reached the requested
// version, it serves selectors, namespaces, pages and exact versions from there.
//
//   - A read of the newest state contains every write that the origin acknowledged before
//     the read. The relay requests the version of the upstream, and concurrent reads share
//     one request. If no event, bookmark or probe advances the relay to that version within a
//     moment, the read passes through to the upstream. A watch then continues from the log of
//     the relay.
//   - If the upstream no longer has the history that the relay needs, the relay adopts the
//     new state and ends every watch with [listwatch.Expired]. It never derives events from
//     the difference between two states. Watches continue only if the new state has the
//     version that the relay has reached.
//   - If the versions of the upstream start over, the relay adopts the new epoch and ends
//     every watch with Expired.
//   - While the upstream is unreachable, watches stay open and reads of any state succeed.
//     [Relay.Health] reports the lag.
//
// # Source files
//
// upstream.go and upstreamwatcher.go are the Source that the relay follows with the loop of
// internal/reflector, and backfill.go obtains its history. logwriter.go writes the events into the
// log of an epoch (epoch.go). consistentread.go requests the version of the upstream and passes
// reads on, and compares the state with a list if no probe succeeds. probe.go advances the relay to
// that version if no event or bookmark does. relay.go puts all of it together and implements the
// Source, and projection.go refuses what a relay of reduced objects cannot serve. health.go and
// monitor.go report the lag, and persist.go keeps a copy in a file.
package relay
