package postgres

import (
	"errors"
	"testing"
)

// A table fails if reading it does not remove the reason for that. An attempt that lost its
// connection does not count, nor does a changed definition.
func TestTableIsNotReadAgainForever(t *testing.T) {
	same := &shape{fingerprint: fingerprint{definition: "a"}}
	changed := func(of *table) error { return dataError{&tableError{of, "its columns have changed"}} }
	of := &table{shape: same}
	for i := range maxReloads - 1 {
		reason := changed(of)
		for range 2 {
			if err := of.allowReload(same, reason); err != nil {
				t.Fatalf("reload %d: %v", i, err)
			}
		}
	}
	if err := of.allowReload(same, changed(of)); err == nil {
		t.Errorf("the same reason for the %dth time: got no error", maxReloads)
	}
	for range maxReloads {
		if err := of.allowReload(&shape{fingerprint: fingerprint{definition: "b"}}, changed(of)); err != nil {
			t.Errorf("with another definition: %v", err)
		}
	}
	if err := of.allowReload(same, errors.New("the connection was lost")); err != nil {
		t.Errorf("after a lost connection: %v", err)
	}
}

func TestAnchorAgeIsPositive(t *testing.T) {
	if age := (Options{AnchorAge: -1}).withDefaults().AnchorAge; age <= 0 {
		t.Errorf("the anchor advances every %v", age)
	}
}
