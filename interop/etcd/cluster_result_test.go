package etcd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
)

// check checks all recorded writes, reads and watches.
func (l *clusterTest) check(start time.Time) {
	for _, s := range l.servers {
		remote := &client.Remote{URL: s.directURL + collectionPath}
		began := l.recorder.Elapsed()
		page := list(l, remote, listwatch.Query{})
		l.recorder.RecordList("", began, listwatch.Query{}, page)
		remote.Close()
	}
	for _, r := range l.remotes {
		r.Close()
	}
	if err := l.writes.catchUp(); err != nil {
		l.Fatal(err)
	}
	records, err := l.writes.linkRecords()
	if err != nil {
		l.Fatal(err)
	}
	h := l.recorder.History()
	h.Writes = l.clients.checkWrites(records)
	report, err := checker.Check(h, nil)
	if err != nil {
		l.Fatal(err)
	}
	for _, violation := range l.clients.violations {
		l.Error(violation)
	}
	l.Logf("%v, %s\n%d of the writes without a response were done\n%s", time.Since(start).Round(time.Second),
		l.summary(), l.clients.countDone(records),
		report.Summary.String())
	if err := report.Err(); err != nil {
		l.Error(err)
	}
	if err := l.checkCoverage(); err != nil {
		l.Errorf("the run did not cover enough: %v", err)
	}
	l.save(h)
}

// checkCoverage returns an error if the run had too few results of a kind that checker.Requirements
// does not count, such as reads of single objects or refused reads.
func (l *clusterTest) checkCoverage() error {
	outcomes, reads := l.clients.counts()
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"acknowledged writes", outcomes[outcomeAcknowledged], 150},
		{"leader changes", l.leaderChanges, 2},
		{"writes without a response", outcomes[outcomeUnknown], 1},
		{"reads of single objects", reads, 20},
		{"sessions resumed at another server", int(l.switches.Load()), 20},
		{"lost watches of etcd", l.noteCount("lost"), 2},
		{"refused consistent reads", l.noteCount("read refused"), 3},
		{"/readyz failures", l.noteCount("not ready"), 3},
		{"relists", l.noteCount("relisted"), 1},
	} {
		if c.got < c.want {
			return fmt.Errorf("got %d %s, want at least %d", c.got, c.what, c.want)
		}
	}
	return nil
}

// noteCount returns the number of times that all servers together have called note with word.
func (l *clusterTest) noteCount(word string) (n int) {
	for _, s := range l.servers {
		n += s.count(word)
	}
	return n
}

// summary describes the run in a few lines.
func (l *clusterTest) summary() string {
	var b strings.Builder
	outcomes, reads := l.clients.counts()
	fmt.Fprintf(&b,
		"%d leader changes; writes: %d acknowledged, %d refused, %d unknown; %d reads of single objects; %d sessions resumed at another server\n",
		l.leaderChanges, outcomes[outcomeAcknowledged], outcomes[outcomeRefused], outcomes[outcomeUnknown], reads,
		l.switches.Load())
	for _, s := range l.servers {
		s.mu.Lock()
		fmt.Fprintf(&b, "server %s: %v\n", s.name, s.counts)
		details := make(map[string]int)
		for _, detail := range s.details {
			details[detail]++
		}
		s.mu.Unlock()
		for _, detail := range slices.Sorted(maps.Keys(details)) {
			fmt.Fprintf(&b, "  %d× %s\n", details[detail], detail)
		}
	}
	return strings.TrimSpace(b.String())
}

// save saves the recorded history if -histories is set or the test failed.
func (l *clusterTest) save(h *checker.History) {
	dir := *historyDir
	if dir == "" && l.Failed() {
		dir = l.ArtifactDir()
	}
	if dir == "" {
		return
	}
	path, err := h.Save(dir, l.Name())
	if err != nil {
		l.Error(err)
	}
	l.Logf("saved in %s", path)
}
