package informer_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/listwatchtest"
)

var (
	errExpired     = &listwatch.Error{Code: listwatch.Expired}
	errUnavailable = &listwatch.Error{Code: listwatch.Unavailable}
)

// withFaults inserts a Source with faults between the store and the informer.
func (w *fixture) withFaults() *listwatchtest.Source {
	f := listwatchtest.New(w.Source)
	w.Source = f
	return f
}

func TestRelistDeletesVanishedObjects(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "a", "b", "c"), &callLog{}
		f := w.withFaults()
		w.Handle(d.handler(), nil)
		w.run()
		synctest.Wait()
		d.take()

		f.Fail(errUnavailable)
		f.Cut(nil)
		synctest.Wait()
		w.put("b", 5)
		w.remove("b")
		w.put("a", 2)
		w.put("new", 1)
		time.Sleep(time.Minute)
		if err := f.Expire(); err != nil {
			t.Fatal(err)
		}
		f.Fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.expect("calls after the relist", "+new1 -b1? a1>2", sorted(d.text()))
		watches := f.Watches()
		if q := watches[len(watches)-1]; q.Start != listwatch.StartAt || !q.SendsInitialEvents() {
			t.Errorf("the last watch requests %+v, want an initial state that is not older than the last version", q)
		}
	})
}

func TestResumedWatchCallsNoHandler(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "a", "b"), &callLog{}
		f := w.withFaults()
		w.Handle(d.handler(), nil)
		w.run()
		synctest.Wait()
		d.take()
		for n, end := range []error{io.EOF, errUnavailable, errExpired} {
			f.Cut(end)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			w.expect(fmt.Sprint("calls after ", end), "", d.text())
			w.put("a", n+2)
			synctest.Wait()
			w.expect("calls for the next change", fmt.Sprintf("a%d>%d", n+1, n+2), d.take())
		}
		if n := len(f.Lists()); n != 0 {
			t.Errorf("got %d lists, want none because the source streams its state", n)
		}
	})
}

func TestUndecodableObjectIsNeverSkipped(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "a"), &callLog{}
		refused, relists := 0, 0
		w.Trace = &informer.Trace{
			DecodeFailed: func(*listwatch.Object, error) { refused++ },
			Lost: func(err error, _ time.Duration, relist bool) {
				if relist && errors.Is(err, listwatch.Corrupt) {
					relists++
				}
			},
		}
		w.Transform = func(t Thing) (Thing, error) {
			switch t.Spec {
			case 13:
				return t, errors.New("spec 13 is rejected")
			case 14:
				panic("spec 14 panics")
			}
			return t, nil
		}
		w.Handle(d.handler(), nil)
		w.run()
		synctest.Wait()
		good := w.Version()
		w.put("b", 13)
		after := w.put("a", 2)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		const maxRelists = 150
		// With full jitter up to 30 s, about 45 relists fit into ten minutes. The limit is
		// generous, because without a delay there would be thousands.
		if refused < 2 || relists < 2 || relists > maxRelists {
			t.Errorf("%d decode failures and %d relists; want at least 2 of each and at most %d relists", refused,
				relists, maxRelists)
		}
		if v := w.Version(); v != good {
			t.Errorf("the store reports version %d, want %d, because a later object was not decoded", v, good)
		}
		w.put("b", 14)
		time.Sleep(10 * time.Minute)
		w.put("b", 15)
		if err := w.WaitForVersion(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.expect("all calls", "+a1! +b15 a1>2", sorted(d.text()))
	})
}

func TestTransformedValueIsStored(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, calls := newFixture(t, "a"), 0
		w.Handle((&callLog{}).handler(), &informer.HandlerOptions{Resync: time.Second})
		w.Transform = func(t Thing) (Thing, error) {
			calls++
			t.Spec *= 10
			return t, nil
		}
		if err := w.AddIndex("spec",
			func(i *informer.Item[Thing]) []string { return []string{fmt.Sprint(i.Value.Spec)} }); err != nil {
			t.Fatal(err)
		}
		w.run()
		if err := w.WaitForVersion(t.Context(), w.put("b", 4)); err != nil {
			t.Fatal(err)
		}
		found, err := w.ByIndex("spec", "40")
		if err != nil || len(found) != 1 || found[0].Name != "b" {
			t.Errorf("spec 40: got %v, error %v; want b", found, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls != 2 {
			t.Errorf("Transform was called %d times, want 2, once per object", calls)
		}
	})
}

// After a restore from a backup, the same version may belong to a different state.
func TestSameVersionInNewEpochMayBeAnotherState(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		first, second := newFixture(t, "a", "b"), newFixture(t, "a", "b")
		a, _ := first.things.Get(t.Context(), listwatch.Key{Name: "a"})
		if again, _ := second.things.Get(t.Context(), listwatch.Key{Name: "a"}); a.Version() != again.Version() ||
			a.UID == again.UID {
			t.Fatalf("the two stores hold %+v and %+v, want the same version and different UIDs", a, again)
		}
		d, f := &callLog{}, first.withFaults()
		first.Handle(d.handler(), nil)
		first.run()
		synctest.Wait()
		f.Replace(second.things)
		f.Cut(errExpired)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			want, _ := second.things.Get(t.Context(), listwatch.Key{Name: name})
			if got, _ := first.Get(listwatch.Key{Name: name}); got.UID != want.UID {
				t.Errorf("%s has uid %s, want %s from the new database", name, got.UID, want.UID)
			}
		}
		first.expect("calls", "+a1! +b1! a1= b1=", d.text())
	})
}
