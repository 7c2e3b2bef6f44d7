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

func TestAnEtcdThatIsNotTheSameIsNotBelieved(t *testing.T) {
	for name, h := range map[string]*pb.ResponseHeader{
		"another cluster":      {ClusterId: 2, Revision: 100},
		"a backup of the past": {ClusterId: 1, Revision: 9},
	} {
		db := &DB{cluster: 1}
		if err := db.check(&pb.ResponseHeader{ClusterId: 1, Revision: 10}, db.seen.floor()); err != nil {
			t.Fatal(err)
		}
		if err := db.check(h, db.seen.floor()); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("%s: %v, want Unavailable", name, err)
		}
		if err := db.check(&pb.ResponseHeader{ClusterId: 1, Revision: 11}, 0); err == nil {
			t.Errorf("%s is forgotten", name)
		}
	}
	// An answer to an earlier request may come later.
	db := &DB{cluster: 1}
	early := db.seen.floor()
	if err := db.check(&pb.ResponseHeader{ClusterId: 1, Revision: 10}, db.seen.floor()); err != nil {
		t.Fatal(err)
	}
	if err := db.check(&pb.ResponseHeader{ClusterId: 1, Revision: 9}, early); err != nil {
		t.Error(err)
	}
}

func TestMembersThatDoNotAnswerAreLeftUntilTheyDo(t *testing.T) {
	var used []string
	h := &health{all: []string{"a", "b", "c"}, used: []string{"a", "b", "c"}, failures: make([]int, 3), use: func(e ...string) { used = e }}
	for _, c := range []struct {
		failures []int
		want     string
	}{
		{[]int{0, 1, 0}, "[]"}, // once is nothing
		{[]int{0, 2, 0}, "[a c]"},
		{[]int{5, 5, 5}, "[]"}, // then at least somebody is asked
		{[]int{5, 5, 0}, "[c]"},
		{[]int{0, 0, 0}, "[a b c]"},
		{[]int{0, 0, 1}, "[]"},
	} {
		used = nil
		h.failures = c.failures
		h.choose()
		if got := sprint(used); got != c.want {
			t.Errorf("failures %v: now uses %s, want %s", c.failures, got, c.want)
		}
	}
}

func sprint(list []string) string { return fmt.Sprint(list) }

func TestPausesGrowWhileThingsGoWrongAndNotAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pause
		took := func() time.Duration {
			began := time.Now()
			p.wait(t.Context())
			return time.Since(began)
		}
		if first := took(); first > pauseMin {
			t.Errorf("the first pause is %v, want at most %v", first, pauseMin)
		}
		for range 20 {
			took()
		}
		if late := took(); late < pauseMax/2 || late > pauseMax {
			t.Errorf("a late pause is %v, want about %v", late, pauseMax)
		}
		time.Sleep(2 * calm)
		if again := took(); again > pauseMin {
			t.Errorf("after a calm the pause is %v, want at most %v", again, pauseMin)
		}
	})
}
