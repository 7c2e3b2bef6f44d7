// Package lane holds whole systems to the guarantees of a watch while everything goes wrong: writers, a server that is killed, drained and
// compacted, a proxy with faults before each watcher, and watchers over every transport, all recorded and judged by package watchcheck.
// It has tests only: one on sockets, for a few seconds, and its twin in memory with a clock of its own, for many minutes of that.
//
// What happens follows from -seed, but for how the machine mixes it. -for and -simulated make runs longer; -histories keeps what was
// recorded, to be judged again.
package lane
