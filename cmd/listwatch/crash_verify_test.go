package main

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// storedHistory returns all changes after the given version. It watches the restarted server, which
// has read the changes from the database file.
func (c *crashTest) storedHistory(start listwatch.Version) (facts []observedChange) {
	c.Helper()
	page := c.list()
	w, err := (&client.Remote{URL: c.url}).Watch(c.Context(), listwatch.Query{Start: listwatch.StartAt, Version: start})
	if err != nil {
		c.Fatal(err)
	}
	defer w.Close()
	state := map[listwatch.Key]string{}
	for e, err := range listwatch.All(c.Context(), w) {
		if err != nil {
			c.Fatal(err)
		}
		f := changeOf(e.Type, e.Object)
		if len(facts) > 0 && f.version <= facts[len(facts)-1].version {
			c.Fatalf("the stored history has version %d after version %d", f.version, facts[len(facts)-1].version)
		}
		facts = append(facts, f)
		if delete(state, f.key); f.kind != listwatch.Deleted {
			state[f.key] = f.data
		}
		if f.version == page.Version {
			break
		}
	}
	for _, o := range page.Items {
		if state[o.Key] != string(o.Data) {
			c.Errorf("the list contains %s, but the history ends with %s", o.Data, state[o.Key])
		}
	}
	if len(page.Items) != len(state) {
		c.Errorf("the list has %d objects, but the history ends with %d", len(page.Items), len(state))
	}
	return facts
}

func (c *crashTest) verifyWrites(truth []observedChange) {
	c.Helper()
	occurrences := make(map[observedChange]int, len(truth))
	for _, f := range truth {
		occurrences[f.asAcknowledged()]++
	}
	for _, a := range c.acked {
		if occurrences[a.observedChange] != 1 {
			c.Errorf("an acknowledged write occurs %d times in the history, want once: %+v",
				occurrences[a.observedChange], a.observedChange)
		}
	}
}

// asAcknowledged returns o as an acknowledgement records it. The acknowledgement of a delete has no
// version, and its data is only the UID.
func (o observedChange) asAcknowledged() observedChange {
	if o.kind == listwatch.Deleted {
		o.version, o.data = 0, string(rawjson.Lookup([]byte(o.data), "metadata", "uid"))
	}
	return o
}

// checkGuarantees checks the recorded lists and watches against the guarantees of a watch. It takes
// the writes from the stored history.
func (c *crashTest) checkGuarantees(truth []observedChange) {
	c.Helper()
	times := make(map[observedChange]acknowledgement, len(c.acked))
	for _, a := range c.acked {
		times[a.observedChange] = a
	}
	h := c.recorder.History()
	before := map[listwatch.Key]*listwatch.Object{}
	for _, f := range truth {
		o, err := listwatch.ParseObject([]byte(f.data))
		if err != nil {
			c.Fatal(err)
		}
		ack := times[f.asAcknowledged()] // zero if the response was lost
		w := checker.Write{Version: f.version, Key: checker.Key(f.key), Began: ack.began, Acked: ack.acked}
		if old := before[f.key]; old != nil {
			w.Before = c.recorder.DeletedState(old, f.version)
		}
		if delete(before, f.key); f.kind != listwatch.Deleted {
			before[f.key], w.After = o, c.recorder.ObjectState(o)
		}
		h.Writes = append(h.Writes, w)
	}
	report, err := checker.Check(h, nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		c.Error(err)
		return
	}
	c.Log(report.Summary.String())
}

// verifyWatcher waits until the watcher of s has seen the whole history, and compares the changes
// that s holds with the history.
func (c *crashTest) verifyWatcher(i int, s *watchedChanges, truth []observedChange) {
	c.Helper()
	var want []observedChange
	selected := map[listwatch.Key]bool{}
	for _, f := range truth {
		o, err := listwatch.ParseObject([]byte(f.data))
		if err != nil {
			c.Fatal(err)
		}
		before, now := selected[f.key], f.kind != listwatch.Deleted && s.query.Labels.Matches(o.Labels)
		selected[f.key] = now
		switch {
		case before && now:
			f.kind = listwatch.Modified
		case now:
			f.kind = listwatch.Added
		case before:
			// The event contains the last state that matched, but has the version of this change.
			// The comparison below ignores that state.
			f.kind, f.data = listwatch.Deleted, ""
		default:
			continue
		}
		want = append(want, f)
	}
	late := time.After(testTimeout)
	for {
		s.mu.Lock()
		got, err := s.changes, s.err
		s.mu.Unlock()
		if err != nil {
			c.Errorf("watcher %d ended with %v", i, err)
			return
		}
		for n := range min(len(got), len(want)) {
			f := got[n]
			if f.kind == listwatch.Deleted {
				f.data, want[n].data = "", ""
			}
			if f != want[n] {
				c.Errorf("watcher %d: event %d is %+v, want %+v", i, n, f, want[n])
				return
			}
		}
		if len(got) > len(want) {
			c.Errorf("watcher %d received %d events, want %d", i, len(got), len(want))
		}
		if len(got) >= len(want) {
			return
		}
		select {
		case <-s.changed:
		case <-late:
			c.Errorf("watcher %d received only %d of %d events in time", i, len(got), len(want))
			return
		}
	}
}
