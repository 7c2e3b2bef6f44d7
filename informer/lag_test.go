package informer_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestLagIsBoundedWhileOtherCollectionsChange(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, n, db := newFixture(t), servertest.NewNetwork(t), memory.Open(memory.Options{})
		things, err := db.Collection(store.SpecOf[Thing]())
		if err != nil {
			t.Fatal(err)
		}
		other, err := db.Collection(store.CollectionSpec{Kind: "Other"})
		if err != nil {
			t.Fatal(err)
		}
		n.Start("origin", things, servertest.Options{})
		remote := &client.Remote{URL: "http://origin/things", Network: n.Transport()}
		defer remote.Close()
		w.Informer = &informer.Informer[Thing]{Source: remote, MaxLag: 10 * time.Second}
		if lag := w.Lag(); lag.Time >= 0 {
			t.Errorf("before Run: got %+v, want an unknown lag", lag)
		}
		if w.CheckLag() == nil {
			t.Error("before Run: CheckLag returned no error for an unknown lag")
		}
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for second := range 600 {
			if _, err := other.Create(t.Context(), []byte(`{"metadata":{"generateName":"x-"}}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.List(listwatch.Query{}); err != nil {
				t.Fatalf("after %d s: %v", second, err)
			}
			if lag := w.Lag(); lag.Time > 6*time.Second || lag.Versions > 6 {
				t.Errorf("after %d s: got the lag %+v, want at most an interval and a probe", second, lag)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestReadsFailWhileTheInformerLags(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		f := w.withFaults()
		w.MaxLag, w.Backoff = 10*time.Second, listwatch.Backoff{Min: time.Second, Max: time.Second}
		if err := w.AddIndex("name",
			func(i *informer.Item[Thing]) []string { return []string{i.Key.Name} }); err != nil {
			t.Fatal(err)
		}
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f.Fail(&listwatch.Error{Code: listwatch.Unavailable, Message: "the server is down"})
			f.Cut(nil)
			time.Sleep(5 * time.Second)
			if err := w.CheckLag(); err != nil {
				t.Error("before MaxLag has passed: ", err)
			}
			time.Sleep(6 * time.Second)
			_, list := w.List(listwatch.Query{})
			_, index := w.ByIndex("name", "a")
			for _, err := range []error{list, index, w.CheckLag()} {
				if !errors.Is(err, listwatch.Unavailable) || !strings.Contains(err.Error(), "MaxLag is 10s") ||
					!strings.Contains(err.Error(), "the server is down") {
					t.Errorf("got %v, want the lag and its reason", err)
				}
			}
			if _, ok := w.Get(listwatch.Key{Name: "a"}); !ok {
				t.Error("Get has no error, but finds nothing")
			}
			f.Fail(nil)
			time.Sleep(5 * time.Second)
			if found, err := w.ByIndex("name", "a"); err != nil || len(found) != 1 {
				t.Errorf("after the outage: got %v, %v", found, err)
			}
		}
	})
}

// If the bound is wrong, a write that is older than the bound is missing.
func TestLagIsNeverTooSmall(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		f := w.withFaults()
		w.MaxLag, w.Backoff = -1, listwatch.Backoff{Min: time.Second, Max: 5 * time.Second}
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		var written []time.Time // the time of the write of each spec
		known := 0
		for spec := range 3000 {
			w.put("a", spec)
			written = append(written, time.Now())
			<-time.After(rand.N(time.Second))
			switch rand.IntN(20) {
			case 0:
				f.Delay(rand.N(3 * time.Second))
			case 1:
				f.Cut(nil)
			case 2:
				f.Fail([]error{nil, nil, errUnavailable}[rand.IntN(3)])
			case 3:
				f.Delay(0)
			}
			lag := w.Lag()
			a, _ := w.Get(listwatch.Key{Name: "a"})
			if lag.Time < 0 {
				continue
			}
			known++
			for late := a.Spec + 1; late < len(written); late++ {
				if age := time.Since(written[late]); age > lag.Time {
					t.Fatalf("the informer lacks write %d, which is %v old, and reports a lag of %v", late, age,
						lag.Time)
				}
			}
		}
		if known < 1000 {
			t.Errorf("the lag was known at %d of 3000 times", known)
		}
	})
}

func TestLagIsUnknownAfterVersionsStartOver(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		old := memory.New[Thing]()
		time.Sleep(time.Hour)
		w := newFixture(t, "a")
		f := w.withFaults()
		w.MaxLag = time.Minute
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		f.Replace(old)
		f.Cut(errExpired)
		time.Sleep(50 * time.Second)
		if lag := w.Lag(); w.Len() != 0 || lag.Time < 0 || lag.Time > 16*time.Second || lag.Versions != 0 {
			t.Errorf("got the lag %+v and %d objects, want a lag in the new epoch", lag, w.Len())
		}
	})
}
