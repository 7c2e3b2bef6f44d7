//go:build !race

package main

// raceEnabled is true if the test runs with the race detector.
const raceEnabled = false
