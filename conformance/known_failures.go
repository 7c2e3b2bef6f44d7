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

// KnownFailures are the expected failures of a target, each with a reason.
type KnownFailures struct {
	entries []knownFailure
}

type knownFailure struct {
	pattern, reason string
}

// ParseKnownFailures reads one known failure per line, in the form PATTERN # REASON; see
// [Match] for patterns. Empty lines and lines that start with "#" are ignored. A line
// without a reason or with an invalid pattern is an error of code Invalid, which names the
// line.
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
			return nil, &listwatch.Error{
				Code:    listwatch.Invalid,
				Message: fmt.Sprintf("line %d: %q has no reason, want PATTERN # REASON", n, text),
			}
		}
		if err := checkPattern(pattern); err != nil {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("line %d", n), Err: err}
		}
		k.entries = append(k.entries, knownFailure{pattern, reason})
	}
	return k, lines.Err()
}

// ReadKnownFailures reads known failures from a file; see [ParseKnownFailures].
func ReadKnownFailures(name string) (*KnownFailures, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseKnownFailures(f)
}

// Reason returns the reason of the first known failure that matches the name of a run. If k
// is nil, no name matches.
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

// Unmatched returns the patterns that match none of the names.
func (k *KnownFailures) Unmatched(names []string) (patterns []string) {
	for _, e := range k.entries {
		if !slices.ContainsFunc(names, func(name string) bool { return Match(e.pattern, name) }) {
			patterns = append(patterns, e.pattern)
		}
	}
	return patterns
}

// Match reports whether a pattern matches the name of a run, GROUP/NAME/VARIANT, such as
// "resume/from-rv/h2". The pattern may be shorter, such as "resume" or "resume/from-rv". The parts
// of a pattern may contain * and ? as in [path.Match].
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
			Code: listwatch.Invalid,
			Message: fmt.Sprintf("pattern %q: must be GROUP, GROUP/NAME or GROUP/NAME/VARIANT, with * and ? as "+
				"wildcards", p),
		}
	}
	return nil
}
