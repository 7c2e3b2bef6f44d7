package etcd

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestReplacedEtcdIsDetected(t *testing.T) {
	for name, h := range map[string]*pb.ResponseHeader{
		"another cluster":      {ClusterId: 2, Revision: 100},
		"a backup of the past": {ClusterId: 1, Revision: 9},
	} {
		db := &DB{clusterID: 1}
		if err := db.checkHeader(&pb.ResponseHeader{ClusterId: 1, Revision: 10}, db.cluster.minRevision()); err != nil {
			t.Fatal(err)
		}
		if err := db.checkHeader(h, db.cluster.minRevision()); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("%s: %v, want Unavailable", name, err)
		}
		if err := db.checkHeader(&pb.ResponseHeader{ClusterId: 1, Revision: 11}, 0); err == nil {
			t.Errorf("%s: a later response is accepted", name)
		}
	}
	// The response to an earlier request may arrive after a later response.
	db := &DB{clusterID: 1}
	early := db.cluster.minRevision()
	if err := db.checkHeader(&pb.ResponseHeader{ClusterId: 1, Revision: 10}, db.cluster.minRevision()); err != nil {
		t.Fatal(err)
	}
	if err := db.checkHeader(&pb.ResponseHeader{ClusterId: 1, Revision: 9}, early); err != nil {
		t.Error(err)
	}
}

func TestFailingMembersAreNotUsed(t *testing.T) {
	var used []string
	h := &healthChecks{
		endpoints: []string{"a", "b", "c"}, used: []string{"a", "b", "c"}, failures: make([]int, 3),
		use: func(e ...string) { used = e },
	}
	for _, c := range []struct {
		failures []int
		want     string
	}{
		{[]int{0, 1, 0}, "[]"}, // a single failure is ignored
		{[]int{0, 2, 0}, "[a c]"},
		{[]int{5, 5, 5}, "[]"}, // if no member is healthy, nothing changes
		{[]int{5, 5, 0}, "[c]"},
		{[]int{0, 0, 0}, "[a b c]"},
		{[]int{0, 0, 1}, "[]"},
	} {
		used = nil
		h.failures = c.failures
		h.choose()
		if got := sprint(used); got != c.want {
			t.Errorf("failures %v: got a change to %s, want %s", c.failures, got, c.want)
		}
	}
}

func sprint(list []string) string { return fmt.Sprint(list) }

func TestBackoffGrowsAndResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		took := func() time.Duration {
			start := time.Now()
			b.wait(t.Context())
			return time.Since(start)
		}
		if first := took(); first > minDelay {
			t.Errorf("the first delay is %v, want at most %v", first, minDelay)
		}
		for range 20 {
			took()
		}
		if late := took(); late < maxDelay/2 || late > maxDelay {
			t.Errorf("a late delay is %v, want about %v", late, maxDelay)
		}
		time.Sleep(2 * backoffReset)
		if again := took(); again > minDelay {
			t.Errorf("after the reset the delay is %v, want at most %v", again, minDelay)
		}
	})
}
