package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
)

// restart replaces the log of the walk with a log restored from copies of the model's
// objects.
func (w *walk) restart() {
	w.checkObjectBytes()
	floor := w.log.Stats().Oldest
	saved := SavedLog{Floor: floor}
	state := make(map[listwatch.Key]*listwatch.Object)
	for _, c := range w.model.records {
		if delete(state, c.object().Key); c.New != nil {
			state[c.New.Key] = c.New
		}
		if c.Version > floor {
			c.Old, c.New = clone(c.Old), clone(c.New)
			c.At = time.Now()
			saved.Records = append(saved.Records, c)
		}
	}
	for _, o := range state {
		saved.Objects = append(saved.Objects, clone(o))
	}
	for len(w.walkers) > 0 {
		w.drop(0)
	}
	options := Options{
		Retention:   listwatch.Retention{Bytes: w.log.retention.maxBytes, FrameCacheBytes: 4096},
		Description: w.log.description,
	}
	var err error
	if w.log, err = Restore(options, saved); err != nil {
		w.Fatal(err)
	}
	w.log.feeds.limits = w.feedLimits()
	if s := w.log.Stats(); s.Newest != w.version || s.Oldest != floor || s.Objects != len(state) {
		w.Fatalf("restored: %+v; want version %d, floor %d, %d objects", s, w.version, floor, len(state))
	}
	w.checkObjectBytes()
}

func clone(o *listwatch.Object) *listwatch.Object {
	if o == nil {
		return nil
	}
	return &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Fields: o.Fields, Data: o.Data}
}

// savedWrites returns the saved log of n updates of one object. There is one update per
// minute, and the last one was a minute ago.
func savedWrites(n int) SavedLog {
	key := listwatch.Key{Name: "a"}
	p := SavedLog{Floor: 10}
	old := thing(key, 5, nil, "n1")
	for i := range n {
		v, age := listwatch.Version(11+i), time.Duration(n-i)*time.Minute
		r := Record{Version: v, Old: old, New: thing(key, v, nil, "n1"), At: time.Now().Add(-age)}
		p.Records = append(p.Records, r)
		old = clone(r.New)
	}
	p.Objects = []*listwatch.Object{old}
	return p
}

func TestAppendDropsOldRestoredRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := Restore(Options{Retention: listwatch.Retention{Age: 150 * time.Second}}, savedWrites(5))
		if err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); l.records.len != 5 || s.Oldest != 10 || s.Newest != 15 {
			t.Errorf("restored: %+v and %d records, want all 5 records after version 10", s, l.records.len)
		}
		put(l, listwatch.Key{Name: "b"}, nil)
		if s := l.Stats(); l.records.len != 3 || s.Oldest != 13 || s.Newest != 16 {
			t.Errorf("after an append: %+v and %d records, want the new record and those of the last 2 minutes", s,
				l.records.len)
		}
	})
}

// If Restore kept times in the future, no record would be dropped until the clock reached
// them.
func TestRestoredFutureRecordsAgeFromNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := savedWrites(5)
		for i := range p.Records {
			p.Records[i].At = p.Records[i].At.Add(24 * time.Hour)
		}
		l, err := Restore(Options{Retention: listwatch.Retention{Age: time.Minute}}, p)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		put(l, listwatch.Key{Name: "b"}, nil)
		if l.records.len != 6 {
			t.Errorf("after a minute: %d records, want all 6", l.records.len)
		}
		time.Sleep(2 * time.Minute)
		put(l, listwatch.Key{Name: "b"}, nil)
		if l.records.len != 1 {
			t.Errorf("after three minutes: %d records, want only the new one", l.records.len)
		}
	})
}

func TestRestoreEnforcesMaxBytes(t *testing.T) {
	l, err := Restore(Options{Retention: listwatch.Retention{Bytes: 1}}, savedWrites(5))
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); l.records.len != 1 || s.Oldest != 14 {
		t.Errorf("%+v and %d records, want only the newest record", s, l.records.len)
	}
}

func TestRestoreKeepsEachObjectOnce(t *testing.T) {
	l, err := Restore(Options{}, savedWrites(3))
	if err != nil {
		t.Fatal(err)
	}
	r := &l.records
	if r.get(0).New != r.get(1).Old {
		t.Error("a record does not share its object with the next record")
	}
	if r.get(2).New != l.Get(listwatch.Key{Name: "a"}) {
		t.Error("the last record does not share its object with the state")
	}
}

func TestRestoreStartsAtTheGivenRevision(t *testing.T) {
	revision := new(revision.Revision)
	revision.Advance(20)
	l, err := Restore(Options{Revision: revision}, savedWrites(2))
	if err != nil {
		t.Fatal(err)
	}
	page, err := l.List(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Match: listwatch.MatchExact, Version: 18})
	if err != nil || page.Version != 18 || len(page.Items) != 1 || page.Items[0].Version != 12 {
		t.Errorf("a list at 18: %+v, %v; want the object as it was written at 12", page, err)
	}
	if s := l.Stats(); s.Newest != 20 {
		t.Errorf("the log is at %d, want 20", s.Newest)
	}
}

func TestRestoreRejectsContradictions(t *testing.T) {
	for want, spoil := range map[string]func(*SavedLog){
		"leaves a at 13, but the state after it has it at 5": func(p *SavedLog) {
			p.Objects = []*listwatch.Object{thing(listwatch.Key{Name: "a"}, 5, nil, "")}
		},
		"leaves a at 13, but the state after it has it at none": func(p *SavedLog) { p.Objects = nil },
		"leaves a at 12, but the state after it has it at 11": func(p *SavedLog) {
			p.Records[2].Old = p.Records[0].New
		},
		"leaves a at none, but the state after it has it at 13": func(p *SavedLog) { p.Records[2].New = nil },
		"the record of version 12 is empty": func(p *SavedLog) {
			p.Records[1] = Record{Version: 12}
		},
		"version 14 is out of order": func(p *SavedLog) { p.Records[1].Version = 14 },
		"version 11 is out of order": func(p *SavedLog) { p.Floor = 11 },
		"b is at version 12, but no record": func(p *SavedLog) {
			p.Objects = append(p.Objects,
				thing(listwatch.Key{Name: "b"}, 12, nil, ""))
		},
	} {
		p := savedWrites(3)
		spoil(&p)
		_, err := Restore(Options{}, p)
		if !errors.Is(err, listwatch.Corrupt) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want code Corrupt and %q", err, want)
		}
	}
}
