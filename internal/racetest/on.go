//go:build race

package racetest

// Enabled is true if the test runs with the race detector.
const Enabled = true
