// Package relay follows a Source and is one itself: one watch of the upstream serves any number of watchers, and versions pass through
// unchanged, so that a client may go on at any relay of the same origin, or at the origin.
//
//	upstream := &client.Remote{URL: "https://origin.example.com/flags"}
//	flags := relay.Open(upstream, relay.Options{})
//	defer flags.Close()
//	http.Handle("/flags", &watchserver.Server{Source: flags})
//
// The type to start with is [Relay].
//
// # What it promises
//
// All that [listwatch.Source] does. Selectors, namespaces, pages and exact versions are answered from the relay's own log and state;
// nothing of them reaches the upstream.
//
//   - A read of the newest state is not older than any write that the origin has acknowledged: the relay asks the upstream how far it is
//     and waits until it is there itself, for 3 seconds; then the read fails with [listwatch.NotYet]. Many such reads share one question.
//   - Where the upstream has lost the history that would be needed, the relay begins with its new state. What happened in between nobody
//     can tell, so every watcher is told [listwatch.Expired], but for one case: a state of the very version that the relay is at has
//     missed nothing. Nothing is made up from the difference of two states.
//   - Where the upstream's versions begin anew, that is passed on as the epoch is, and every watcher is told Expired.
//   - While the upstream can't be reached watchers stay, and reads of any state are answered; [Relay.Status] says how old it may be.
//
// # Where to look
//
// upstream.go is what the relay follows, and lookback.go how it comes to have a past from the start. sink.go makes a log of what it
// reads; generation.go is a log and the epoch it is of. fresh.go finds out how new the upstream is, probe.go helps the relay to get there
// where nothing happens that would say so. read.go is the Source, and status.go tells how it goes.
package relay
