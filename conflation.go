package listwatch

import (
	"fmt"
	"strconv"
	"time"
)

// MaxConflation is the longest interval of [Query.Conflate] that a server accepts.
const MaxConflation = time.Minute

// ParseConflation parses the parameter conflate of a watch, a duration from zero to [MaxConflation]
// such as 500ms or 5s, to a value of [Query.Conflate]. An empty text means zero, and the duration
// zero becomes a negative value. The error for any other text has code Invalid.
func ParseConflation(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	switch d, err := time.ParseDuration(text); {
	case err != nil || d < 0 || d > MaxConflation:
		return 0, &Error{
			Code: Invalid, Message: fmt.Sprintf("conflate: %q must be a duration from 0 to 60s, such as 1s", text),
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
