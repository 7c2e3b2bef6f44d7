package table

import (
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
)

// unknownAge is kubectl's text for a missing or invalid time.
const unknownAge = "<unknown>"

// appendAge appends a JSON string with the time between then and now. then is a JSON string with a
// time in the format of RFC 3339.
func appendAge(dst []byte, then jsonvalue.Value, now time.Time) []byte {
	t, err := time.Parse(time.RFC3339, then.Text())
	if err != nil || t.IsZero() {
		return rawjson.AppendString(dst, unknownAge)
	}
	return rawjson.AppendString(dst, formatAge(now.Sub(t)))
}

// appendDate is like appendAge for the cell of a column of dates.
func appendDate(dst []byte, then string, now time.Time) []byte {
	if then == "" {
		return rawjson.AppendString(dst, unknownAge)
	}
	t, err := time.Parse(time.RFC3339, then)
	switch {
	case err != nil:
		return rawjson.AppendString(dst, "<invalid>")
	case t.IsZero():
		return rawjson.AppendString(dst, unknownAge)
	}
	return rawjson.AppendString(dst, formatAge(now.Sub(t)))
}

// ageFormats are the formats of kubectl's AGE column. Each applies to ages below its limit. Some
// formats show two units, such as minutes and seconds.
var ageFormats = []struct {
	below       time.Duration
	unit, minor time.Duration // if minor is zero, only unit is shown
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

// formatAge formats d as kubectl does: "45s", "5m30s", "3d4h". A slightly negative age,
// which a lagging clock can cause, becomes "0s". An age of minus two seconds or less
// becomes "<invalid>".
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
