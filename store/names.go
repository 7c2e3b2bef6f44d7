package store

import "math/rand/v2"

const (
	suffixLength = 5
	// suffixLetters are Kubernetes': no vowels and no digits that look like them, so that no words come out.
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789"
	// longestBase keeps generated names within 63 characters, so that they can be labels.
	longestBase = 63 - suffixLength
)

// generated returns a name made of a prefix and a random suffix, as Kubernetes makes it of metadata.generateName.
func generated(prefix string) string {
	var s [suffixLength]byte
	for i := range s {
		s[i] = suffixLetters[rand.IntN(len(suffixLetters))]
	}
	return withSuffix(prefix, string(s[:]))
}

func withSuffix(prefix, suffix string) string {
	return prefix[:min(len(prefix), longestBase)] + suffix
}
