package digest

import "testing"

func TestDigestsDiffer(t *testing.T) {
	seen := map[string][]string{}
	for _, texts := range [][]string{
		nil,
		{""},
		{"", ""},
		{"a"},
		{"a", ""},
		{"", "a"},
		{"a", "b"},
		{"ab"},
		{"a", "b", ""},
	} {
		digest := Of(texts...)
		if other, ok := seen[digest]; ok || len(digest) != 16 {
			t.Errorf("%q: got %q, as %q", texts, digest, other)
		}
		seen[digest] = texts
	}
}
