//go:build !race

package relay_test

// raceEnabled is true if the test runs with the race detector.
const raceEnabled = false
