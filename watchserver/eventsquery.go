package watchserver

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// eventsHeader is the field of an Events Query (draft-gupta-httpapi-events-query, section "Events
// Header Field"). Its member duration is the number of seconds that a client wants to watch, and
// in a response the time after which the server ends the watch at the latest.
const eventsHeader = "Events"

// secondsText matches an Integer or Decimal that is not negative (rfc9651#section-3.3).
var secondsText = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,3})?$`)

// wantedDuration returns the duration that the client prefers, or zero if it has no preference. The
// draft requires that an invalid value is ignored.
func wantedDuration(h http.Header) (wanted time.Duration) {
	for member := range strings.SplitSeq(strings.Join(h.Values(eventsHeader), ","), ",") {
		value, _, _ := strings.Cut(strings.TrimSpace(member), ";")
		if text, ok := strings.CutPrefix(value, "duration="); ok && secondsText.MatchString(text) {
			seconds, _ := strconv.ParseFloat(text, 64) // cannot fail
			wanted = time.Duration(min(seconds, maxDuration.Seconds()) * float64(time.Second))
		}
	}
	return wanted
}

// announceDuration sets the header for a watch that ends after d, or at until if that is earlier. A
// zero value means never.
func announceDuration(h http.Header, d time.Duration, until time.Time) {
	if left := time.Until(until); !until.IsZero() && (d == 0 || left < d) {
		d = left
	}
	if d > 0 {
		h.Set(eventsHeader, "duration="+strconv.FormatFloat(math.Ceil(d.Seconds()), 'f', 0, 64))
	}
}
