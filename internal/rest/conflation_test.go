package rest

import (
	"errors"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
)

func TestParseConflation(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": -1, "0s": -1, "1s": time.Second, "500ms": 500 * time.Millisecond, "60s": time.Minute,
		"1m": time.Minute,
	} {
		if got, err := ParseConflation(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1", "-1s", "61s", "soon", "1s,2s", " 1s", "NaNs"} {
		if got, err := ParseConflation(text); !errors.Is(err, listwatch.Invalid) || got != 0 {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestFormatConflationIsParsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", -1: "0s", time.Second: "1s", 500 * time.Millisecond: "0.5s", time.Minute: "60s", 1: "0.000000001s",
	} {
		got := FormatConflation(d)
		if parsed, err := ParseConflation(got); got != want || parsed != d || err != nil {
			t.Errorf("%v: got %q, which is %v, %v", d, got, parsed, err)
		}
	}
}
