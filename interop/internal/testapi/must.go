package testapi

import "testing"

// Must is called as Must(f())(t). It returns the value that f returns, and fails the test if f
// returns an error.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
