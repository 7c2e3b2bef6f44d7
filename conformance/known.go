package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
)

// Known are the failures of a target that are expected, each with its reason.
type KnownFailures struct {
	entries []knownFailure
}

type knownFailure struct {
	pattern, reason string
}

// ParseKnown reads known failures: a pattern of names and, behind a "#", the reason, a line each. Empty lines and those that begin with
// "#" are comments. A line without a reason, or with a bad pattern, is an error of code Invalid that names the line.
func ParseKnownFailures(r io.Reader) (*KnownFailures, error) {
	k := new(KnownFailures)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		pattern, reason, _ := strings.Cut(text, "#")
		pattern, reason = strings.TrimSpace(pattern), strings.TrimSpace(reason)
		if reason == "" {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("line %d: %q has no reason: write PATTERN # REASON", n, text)}
		}
		if err := checkPattern(pattern); err != nil {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("line %d", n), Err: err}
		}
		k.entries = append(k.entries, knownFailure{pattern, reason})
	}
	return k, lines.Err()
}

// ReadKnown is ParseKnown for a file.
func ReadKnownFailures(name string) (*KnownFailures, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseKnownFailures(f)
}

// Reason returns why a run of a name is expected to be a failure. A nil Known expects none.
func (k *KnownFailures) Reason(name string) (reason string, known bool) {
	if k == nil {
		return "", false
	}
	for _, e := range k.entries {
		if Match(e.pattern, name) {
			return e.reason, true
		}
	}
	return "", false
}

// Unmatched returns the patterns that none of names matches.
func (k *KnownFailures) Unmatched(names []string) (patterns []string) {
	for _, e := range k.entries {
		if !slices.ContainsFunc(names, func(name string) bool { return Match(e.pattern, name) }) {
			patterns = append(patterns, e.pattern)
		}
	}
	return patterns
}

// Match reports whether a pattern names a run: "resume/restart/h2" is GROUP/NAME/WAY. A pattern may be shorter, "resume" or
// "resume/restart", and its parts may hold * and ?, as in path.Match.
func Match(pattern, name string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(name, "/")
	if len(want) > len(have) {
		return false
	}
	for i, w := range want {
		if ok, err := path.Match(w, have[i]); !ok || err != nil {
			return false
		}
	}
	return true
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}

func checkPattern(p string) error {
	_, err := path.Match(p, "")
	if err != nil || p == "" || strings.Count(p, "/") > 2 {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("%q is no pattern of names: want GROUP, GROUP/NAME or GROUP/NAME/WAY, with * and ? as in *.txt", p),
		}
	}
	return nil
}
