//go:build !race

package racetest

// Enabled is true if the race detector is enabled.
const Enabled = false
