package servecmd

import (
	"errors"
	"testing"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A TTL that has no effect must not go unnoticed.
func TestStoresThatCannotEndObjectsAreRefused(t *testing.T) {
	spec := store.CollectionSpec{TTL: func([]byte) time.Duration { return time.Hour }}
	c, err := memory.Open(memory.Options{}).Collection(spec)
	if err == nil {
		err = checkExpiry(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := checkExpiry(store.New(spec, struct{ store.Backend }{c.Backend()})); err == nil {
		t.Error("a store that cannot end objects was accepted")
	}
	if err := checkExpiry(store.New(store.CollectionSpec{}, struct{ store.Backend }{c.Backend()})); err != nil {
		t.Errorf("without a TTL: got %v", err)
	}
}

func TestTTLIsADurationOrAPathOfSeconds(t *testing.T) {
	for _, c := range []struct {
		flag, object string
		want         time.Duration
	}{
		{"events=1h", `{}`, time.Hour},
		{"leases=spec.leaseDurationSeconds", `{"spec":{"leaseDurationSeconds":15}}`, 15 * time.Second},
		{"leases=spec.ttl", `{"spec":{"ttl":0.5}}`, time.Second / 2},
		{"leases=spec.ttl", `{"spec":{"ttl":1e300}}`, maxTTL},
		{"leases=spec.ttl", `{"spec":{"ttl":-1}}`, 0},
		{"leases=spec.ttl", `{"spec":{"ttl":"15"}}`, 15 * time.Second},
		{"leases=spec.ttl", `{"spec":{"ttl":"15s"}}`, 0},
		{"leases=spec.ttl", `{"spec":{"ttl":"NaN"}}`, 0},
		{"leases=spec.ttl", `{"spec":{}}`, 0},
		{"leases=spec.ttl", `{"spec":15}`, 0},
	} {
		ttls, err := parseTTLs([]string{c.flag})
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range ttls {
			if got := of([]byte(c.object)); got != c.want {
				t.Errorf("--ttl %s, %s: got %v, want %v", c.flag, c.object, got, c.want)
			}
		}
	}
	for _, flags := range [][]string{
		{""},
		{"events"},
		{"events="},
		{"=1h"},
		{"events=0s"},
		{"events=-1h"},
		{"events=1"},
		{"events=1 hour"},
		{"events=spec..x"},
		{"events=1h", "events=2h"},
	} {
		_, err := parseTTLs(flags)
		if usage, ok := errors.AsType[*cli.ExitError](err); !ok || usage.Code != cli.ExitUsage {
			t.Errorf("--ttl %q: got %v, want a usage error", flags, err)
		}
	}
}
