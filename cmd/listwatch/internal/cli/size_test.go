package cli

import (
	"testing"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"0": 0, "1000": 1000, "256MiB": 256 << 20, "64 KiB": 64 << 10, "1Gi": 1 << 30, "2kb": 2000, "-1": -1, "3m": 3e6,
		"1TiB": 1 << 40,
	} {
		var got ByteSize
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "1.5MiB", "1XB", "9999999TiB", "1 2"} {
		var got ByteSize
		if err := got.Set(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
	if size := ByteSize(256 << 20); size.String() != "256MiB" {
		t.Errorf("got %s, want 256MiB", &size)
	}
}
