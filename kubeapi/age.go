package kubeapi

import (
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// unknownAge is what kubectl's readers are used to where no time is known.
const unknownAge = "<unknown>"

// appendAge appends the time since then, which is an RFC 3339 time in quotes, as a JSON string.
func appendAge(dst []byte, then Value, now time.Time) []byte {
	t, err := time.Parse(time.RFC3339, then.Text())
	if err != nil || t.IsZero() {
		return rawjson.AppendString(dst, unknownAge)
	}
	return rawjson.AppendString(dst, formatAge(now.Sub(t)))
}

// ageSteps say how an age is rounded: up to a limit it is written in a unit, with a smaller one behind it while that still means
// something. They are the steps of kubectl's column AGE.
var ageFormats = []struct {
	below       time.Duration
	unit, minor time.Duration // minor is zero where there is none
}{
	{2 * time.Minute, time.Second, 0},
	{10 * time.Minute, time.Minute, time.Second},
	{3 * time.Hour, time.Minute, 0},
	{8 * time.Hour, time.Hour, time.Minute},
	{2 * day, time.Hour, 0},
	{8 * day, day, time.Hour},
	{2 * year, day, 0},
	{8 * year, year, day},
	{1<<63 - 1, year, 0},
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

var unitLetters = map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h", day: "d", year: "y"}

// age writes d as kubectl does: "45s", "5m30s", "3d4h". A clock that is a moment behind makes no age negative; one that is far
// behind makes it "<invalid>".
func formatAge(d time.Duration) string {
	if d <= -2*time.Second {
		return "<invalid>"
	}
	d = max(d, 0)
	i := 0
	for d >= ageFormats[i].below && i < len(ageFormats)-1 {
		i++
	}
	step := ageFormats[i]
	s := formatUnits(d, step.unit)
	if step.minor != 0 {
		if rest := d % step.unit; rest >= step.minor {
			s += formatUnits(rest, step.minor)
		}
	}
	return s
}

func formatUnits(d, unit time.Duration) string {
	return strconv.FormatInt(int64(d/unit), 10) + unitLetters[unit]
}
