// Package robustness holds whole systems to the guarantees of a watch while everything goes wrong: writers, a server that is killed, drained and
// compacted, a proxy with faults before each watcher, and watchers over every transport, all recorded and judged by package watchcheck.
//
// [Run] does it on sockets, for a few seconds; its twin, in memory with a clock of its own and for many minutes of that, is for go test. What
// happens follows from a seed, but for how the machine mixes it. Of the tests, -seed says it, -for and -simulated make runs longer, and
// -histories keeps what was recorded, to be judged again.
package robustness
