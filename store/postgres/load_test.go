package postgres

import "testing"

// A table fails if reading it does not remove the reason for that. An attempt that lost its
// connection does not count.
func TestTableIsNotReadAgainForever(t *testing.T) {
	of := &table{shape: &shape{fingerprint: fingerprint{definition: "a"}}}
	first, second := &tableError{of, "its columns have changed"}, &tableError{of, "its columns have changed"}
	for range 2 {
		if err := of.allowReload(dataError{first}); err != nil {
			t.Fatal(err)
		}
	}
	if err := of.allowReload(dataError{second}); err == nil {
		t.Error("the same reason a second time: got no error")
	}
	of.shape = &shape{fingerprint: fingerprint{definition: "b"}}
	if err := of.allowReload(dataError{&tableError{of, "its columns have changed"}}); err != nil {
		t.Errorf("with another definition: %v", err)
	}
}
