package store

import "math/rand/v2"

const (
	suffixLength = 5
	// suffixLetters are the characters that Kubernetes uses. They lack vowels and the digits that
	// resemble vowels, so that a suffix cannot be a word.
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789"
	// maxPrefix keeps generated names within 63 characters, so that they can be label values.
	maxPrefix = 63 - suffixLength
)

// generateName returns prefix with a random suffix, as Kubernetes does for
// metadata.generateName.
func generateName(prefix string) string {
	var s [suffixLength]byte
	for i := range s {
		s[i] = suffixLetters[rand.IntN(len(suffixLetters))]
	}
	return withSuffix(prefix, string(s[:]))
}

func withSuffix(prefix, suffix string) string {
	return prefix[:min(len(prefix), maxPrefix)] + suffix
}
