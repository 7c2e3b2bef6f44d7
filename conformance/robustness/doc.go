// Package robustness tests a whole system under faults. Writers change a store while its
// server is killed and drained and its history is compacted, and watchers follow the store
// over every transport through fault proxies. Package checker verifies the recorded
// history.
//
// [Run] runs on TCP sockets for a few seconds. The package's tests run the same system in
// memory with a fake clock. The random choices depend on a seed, but the scheduling of
// goroutines does not. The tests have flags: -seed repeats a run, -for and -simulated make
// runs longer, and -histories saves the recorded histories.
package robustness
