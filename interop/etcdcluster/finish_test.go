package etcdcluster

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

// finish judges what was recorded.
func (l *lane) finish(begun time.Time) {
	for _, s := range l.servers {
		remote := &client.Remote{URL: s.base + path}
		began := l.rec.Elapsed()
		page, err := remote.List(l.Context(), listwatch.Query{})
		if err != nil {
			l.Fatal(err)
		}
		l.rec.RecordList("", began, listwatch.Query{}, page)
		remote.Close()
	}
	for _, r := range l.dialed {
		r.Close()
	}
	if err := l.scribe.catchUp(); err != nil {
		l.Fatal(err)
	}
	records, err := l.scribe.link()
	if err != nil {
		l.Fatal(err)
	}
	h := l.rec.History()
	h.Writes = l.desk.judgeWrites(records)
	report, err := checker.Check(h, nil)
	if err != nil {
		l.Fatal(err)
	}
	for _, wrong := range l.desk.wrong {
		l.Error(wrong)
	}
	l.Logf("%v, %s\n%d of the writes whose answer was lost were done\n%s", time.Since(begun).Round(time.Second), l.story(), l.desk.found(records),
		report.Summary.String())
	if err := report.Err(); err != nil {
		l.Error(err)
	}
	if err := l.tooEasy(); err != nil {
		l.Errorf("that was too easy: %v", err)
	}
	l.keep(h)
}

// tooEasy says what a run lacks beside what its Requirements are about.
func (l *lane) tooEasy() error {
	outcomes, looks := l.desk.counts()
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"writes that were acknowledged", outcomes[acked], 150},
		{"leaders that followed another", l.changes, 2},
		{"writes whose answer was lost", outcomes[unknown], 1},
		{"reads of one object", looks, 20},
		{"sessions that went on at another server", int(l.moves.Load()), 20},
		{"watches of etcd that were lost", l.told("lost"), 2},
		{"fresh reads that were refused", l.told("fresh read refused"), 3},
		{"times that /readyz said no", l.told("not ready"), 3},
		{"collections that were listed again", l.told("relisted"), 1},
	} {
		if c.got < c.want {
			return fmt.Errorf("%d %s, want at least %d", c.got, c.what, c.want)
		}
	}
	return nil
}

// told is how often servers told of something.
func (l *lane) told(word string) (n int) {
	for _, s := range l.servers {
		n += s.count(word)
	}
	return n
}

// story says in a few lines what happened.
func (l *lane) story() string {
	var b strings.Builder
	outcomes, looks := l.desk.counts()
	fmt.Fprintf(&b, "%d leaders followed another; writes: %d acknowledged, %d refused, %d unknown; %d reads of one object; %d sessions went on at another server\n",
		l.changes, outcomes[acked], outcomes[refused], outcomes[unknown], looks, l.moves.Load())
	for _, s := range l.servers {
		s.mu.Lock()
		fmt.Fprintf(&b, "server %s: %v\n", s.name, s.told)
		whys := make(map[string]int)
		for _, why := range s.why {
			whys[why]++
		}
		s.mu.Unlock()
		for _, why := range slices.Sorted(maps.Keys(whys)) {
			fmt.Fprintf(&b, "  %d× %s\n", whys[why], why)
		}
	}
	return strings.TrimSpace(b.String())
}

// keep saves what was recorded where that is wanted.
func (l *lane) keep(h *checker.History) {
	into := *laneKeep
	if into == "" && l.Failed() {
		into = l.ArtifactDir()
	}
	if into == "" {
		return
	}
	path, err := h.Save(into, l.Name())
	if err != nil {
		l.Error(err)
	}
	l.Logf("kept in %s", path)
}
