package etcdcluster

import (
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// judgeWrites holds what writers and readers were told against the records, and returns what they are to a checker of watches.
func (d *desk) judgeWrites(records []record) []checker.Write {
	done := make(map[string][]int) // by mark, or the uid of what was deleted
	for i, r := range records {
		name := "delete " + uid(r.before)
		if r.after != nil {
			name = mark(r.after)
		}
		done[name] = append(done[name], i)
	}
	writes := make([]checker.Write, len(records))
	for i, r := range records {
		writes[i] = checker.Write{Version: r.version, Key: checker.Key(r.key), Before: d.side(r.before), After: d.side(r.after)}
	}
	for _, a := range d.attempts {
		d.judgeAttempt(a, done, records, writes)
	}
	for i, w := range writes {
		if w.Began == 0 {
			d.wrong = append(d.wrong, fmt.Sprintf("nobody asked for version %d of %v", w.Version, w.Key))
			writes[i].Began = 1
		}
	}
	d.judgeLooks(records)
	return writes
}

// found returns how many of the writes whose answer was lost are among the records; deletes are not counted.
func (d *desk) found(records []record) (n int) {
	lost := make(map[string]bool)
	for _, a := range d.attempts {
		lost[a.mark] = a.outcome == unknown && a.mark != ""
	}
	for _, r := range records {
		if r.after != nil && lost[mark(r.after)] {
			n++
		}
	}
	return n
}

// side returns what data, as etcd has it, looks like to a checker of watches.
func (d *desk) side(data []byte) *checker.ObjectState {
	if data == nil {
		return nil
	}
	o, err := listwatch.ParseObject(data)
	if err != nil {
		d.wrong = append(d.wrong, fmt.Sprintf("etcd holds %s: %v", data, err))
		return &checker.ObjectState{}
	}
	o.Fields = map[string]string{
		listwatch.FieldNamespace: o.Key.Namespace, listwatch.FieldName: o.Key.Name, "spec.color": colorOf(data),
	}
	return d.rec.ObjectState(o)
}

func colorOf(data []byte) string {
	c, _ := rawjson.String(rawjson.Lookup(data, "spec", "color"))
	return c
}

func (d *desk) judgeAttempt(a attempt, done map[string][]int, records []record, writes []checker.Write) {
	wrong := func(what string) { d.wrong = append(d.wrong, fmt.Sprintf("%s: %+v", what, a)) }
	if a.mark == "" {
		d.judgeDelete(a, done, records, writes)
		return
	}
	at := done[a.mark]
	switch {
	case len(at) > 1:
		wrong("done more than once")
	case a.outcome == acked && len(at) == 0:
		wrong("acknowledged and lost")
	case a.outcome == refused && len(at) > 0:
		wrong("refused and done")
	}
	if len(at) == 0 {
		return
	}
	r, w := &records[at[0]], &writes[at[0]]
	w.Began = a.began
	switch {
	case a.outcome == acked && (r.version != a.version || r.key != a.key):
		wrong(fmt.Sprintf("acknowledged, and done to %v at version %d", r.key, r.version))
	case a.from != 0 && r.was != a.from:
		wrong(fmt.Sprintf("done to version %d", r.was))
	case a.outcome == acked:
		w.Acked = a.ended
	}
}

func (d *desk) judgeDelete(a attempt, done map[string][]int, records []record, writes []checker.Write) {
	if a.outcome != acked {
		// It may have been any delete of that key whose writer does not know; the first began it, for all that anybody can tell.
		for i, r := range records {
			if r.key == a.key && r.after == nil && a.outcome == unknown && writes[i].Acked == 0 && (writes[i].Began == 0 || a.began < writes[i].Began) {
				writes[i].Began = a.began
			}
		}
		return
	}
	at := done["delete "+a.uid]
	if len(at) != 1 {
		d.wrong = append(d.wrong, fmt.Sprintf("acknowledged, and done %d times: %+v", len(at), a))
		return
	}
	writes[at[0]].Began, writes[at[0]].Acked = a.began, a.ended
}

// judgeLooks: what was read must be the state at some version not older than any write acknowledged before.
func (d *desk) judgeLooks(records []record) {
	versions := make(map[listwatch.Key][]record)
	for _, r := range records {
		versions[r.key] = append(versions[r.key], r)
	}
	acks := slices.DeleteFunc(slices.Clone(d.attempts), func(a attempt) bool { return a.outcome != acked || a.version == 0 })
	slices.SortFunc(acks, func(a, b attempt) int { return int(a.ended - b.ended) })
	slices.SortFunc(d.looks, func(a, b look) int { return int(a.began - b.began) })
	fresh := listwatch.Version(0)
	for _, l := range d.looks {
		for ; len(acks) > 0 && acks[0].ended < l.began; acks = acks[1:] {
			fresh = max(fresh, acks[0].version)
		}
		if !wasSo(versions[l.key], l.version, fresh) {
			d.wrong = append(d.wrong, fmt.Sprintf("read of an old state: %+v, and version %d was acknowledged before", l, fresh))
		}
	}
}

// wasSo reports whether an object was at version v, or not there, at any time since version fresh. of is what was done to it.
func wasSo(of []record, v, fresh listwatch.Version) bool {
	if v == 0 && (len(of) == 0 || of[0].version > fresh) {
		return true
	}
	for i, r := range of {
		same := r.version == v && r.after != nil || v == 0 && r.after == nil
		if same && (i == len(of)-1 || of[i+1].version > fresh) {
			return true
		}
	}
	return false
}
