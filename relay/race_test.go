//go:build race

package relay_test

// raceEnabled says that the race detector is at work.
const raceEnabled = true
