package rest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
)

// maxConflation is the longest interval of [listwatch.Query].Conflate that a server accepts.
const maxConflation = time.Minute

// ParseConflation parses the parameter conflate of a watch, a duration from zero to a minute, such
// as 500ms or 5s, to a value of [listwatch.Query].Conflate. An empty text means zero, and the
// duration zero becomes a negative value. The error for any other text has code Invalid.
func ParseConflation(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	switch d, err := time.ParseDuration(text); {
	case err != nil || d < 0 || d > maxConflation:
		return 0, &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: fmt.Sprintf("conflate: %q must be a duration from 0 to 60s, such as 1s", text),
		}
	case d == 0:
		return -1, nil
	default:
		return d, nil
	}
}

// FormatConflation returns the text that [ParseConflation] parses to d.
func FormatConflation(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(max(d, 0).Seconds(), 'f', -1, 64) + "s"
}
