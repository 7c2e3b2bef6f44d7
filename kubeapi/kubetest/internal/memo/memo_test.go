package memo_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/memo"
)

var errValue = errors.New("an error")

func TestEachResultIsCreatedOnce(t *testing.T) {
	var m memo.Memo[string]
	var created atomic.Int32
	var ended sync.WaitGroup
	for i := range 100 {
		key := fmt.Sprint("k", i%4)
		ended.Go(func() {
			got, err := m.Get(key, func() (string, error) {
				created.Add(1)
				return "value of " + key, errValue
			})
			if got != "value of "+key || err != errValue {
				t.Errorf("got %q, %v for %s", got, err, key)
			}
		})
	}
	ended.Wait()
	if n := created.Load(); n != 4 {
		t.Errorf("created %d results, want 4", n)
	}
}

func TestOldResultsAreDropped(t *testing.T) {
	var m memo.Memo[int]
	created := 0
	get := func(i int) {
		t.Helper()
		got, err := m.Get(fmt.Sprint(i), func() (int, error) {
			created++
			return i, nil
		})
		if got != i || err != nil {
			t.Errorf("got %d, %v for %d", got, err, i)
		}
	}
	for i := range 3000 {
		get(i)
	}
	if get(0); created != 3001 {
		t.Errorf("created %d results, want the first one to be created again", created)
	}
}
