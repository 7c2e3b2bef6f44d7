// Package checker verifies that watchers saw exactly what was written. Its input is a history:
// the acknowledged writes, the requests of watchers and the events they received, in any number
// of sessions over any transports. The checker verifies the history against fourteen guarantees
// of a watch, W1 to W14; see [Guarantee].
//
// The main type is [Recorder]. It records a history while servers and clients run under faults.
// [Check] verifies the history:
//
//	meta := checker.Meta{Name: "reset storm", Seed: seed, Base: db.Version()}
//	recorder := checker.NewRecorder(meta)
//	writes := recorder.Collection(collection)             // write through this
//	source := recorder.Watcher("w1").Source(remote, "h2") // list and watch through this
//	...
//	report, err := checker.Check(recorder.History(), nil)
//	if err == nil {
//		err = report.Err()
//	}
//
// A history can be saved as gzipped JSON lines and checked again later: see [History.WriteTo],
// [ReadHistory] and [CheckDir].
//
// # Algorithm
//
// The version of a write is its position in the history, so the checker need not search for an
// order that explains the observations. It projects the history onto each selection once, which
// gives the expected events, and compares each watcher with them in one pass. Complete states
// (initial events, lists, the content of informers) are compared in one pass over the writes.
// The cost is linear in the size of the history.
//
// # Limits
//
// Every write must be recorded as soon as its outcome is known. If the response to a write was
// lost, the caller must look it up in the store and record it before the check. All times must come
// from one process. The checker cannot judge what was not recorded: if
// [Meta].AllCompactionsRecorded is false, it does not verify that an Expired was justified.
package checker
