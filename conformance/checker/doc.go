// Package checker judges whether watchers saw what was written. It takes a history, which is what writers were told, what watchers asked
// for and what came back, in any number of sessions over any transports, and holds it against the fourteen guarantees of a watch, the
// [Rule]s W1 to W14.
//
// The type to start with is [Recorder]: it takes the history down while servers, clients and faults are at work. [Check] judges it:
//
//	rec := watchcheck.NewRecorder(watchcheck.Meta{Name: "reset storm", Seed: seed, Base: db.Version()})
//	writes := rec.Writes(collection)                     // write through this
//	source := rec.Witness("w1").Source(remote, "h2")     // list and watch through this
//	...
//	report, err := watchcheck.Check(rec.History(), nil)
//	if err == nil {
//		err = report.Err()
//	}
//
// A history can be kept, as gzip of JSON lines, and judged again by anybody: see [History.WriteTo], [ReadHistory] and [CheckDir].
//
// # How it judges
//
// A write's version is its place in the history, so there is no search for an order that would explain what was seen: each
// selection has one projection of the history, and each watcher is walked along it once. What claims to be a state (initial events,
// lists, what informers hold) is compared in one pass over the writes. The cost is linear in what was recorded.
//
// # Limits
//
// All writes must be recorded, once their outcome is known: a write whose answer was lost has to be looked up in the store before the
// check. Times are those of one process. What is not recorded can't be judged: where [Meta].Floors is false nobody knows whether
// an Expired was due.
package checker
