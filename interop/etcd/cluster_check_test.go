package etcd

import (
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// checkWrites compares the responses that writers and readers received with the records of etcd. It
// returns the records in the form that package checker expects.
func (c *clientLog) checkWrites(records []writeRecord) []checker.Write {
	// done maps each write to the indexes of its records. The key is the mark of the write (see
	// markOf), or, for a delete, "delete " and the uid of the deleted object.
	done := make(map[string][]int)
	for i, r := range records {
		name := "delete " + uidOf(r.before)
		if r.after != nil {
			name = markOf(r.after)
		}
		done[name] = append(done[name], i)
	}
	writes := make([]checker.Write, len(records))
	for i, r := range records {
		writes[i] = checker.Write{
			Version: r.version, Key: checker.Key(r.key), Before: c.objectState(r.before),
			After: c.objectState(r.after),
		}
	}
	for _, a := range c.attempts {
		c.checkAttempt(a, done, records, writes)
	}
	for i, w := range writes {
		if w.Began == 0 {
			c.violations = append(c.violations, fmt.Sprintf("no client wrote version %d of %v", w.Version, w.Key))
			writes[i].Began = 1
		}
	}
	c.checkReads(records)
	return writes
}

// countDone returns the number of writes that were done although their response was lost.
// It does not count deletes.
func (c *clientLog) countDone(records []writeRecord) (n int) {
	lost := make(map[string]bool)
	for _, a := range c.attempts {
		lost[a.mark] = a.outcome == outcomeUnknown && a.mark != ""
	}
	for _, r := range records {
		if r.after != nil && lost[markOf(r.after)] {
			n++
		}
	}
	return n
}

// objectState returns the state that the checker expects for a value stored in etcd.
func (c *clientLog) objectState(data []byte) *checker.ObjectState {
	if data == nil {
		return nil
	}
	o, err := listwatch.ParseObject(data)
	if err != nil {
		c.violations = append(c.violations, fmt.Sprintf("etcd holds %s: %v", data, err))
		return &checker.ObjectState{}
	}
	o.Fields = map[string]string{
		listwatch.FieldNamespace: o.Key.Namespace, listwatch.FieldName: o.Key.Name, "spec.color": colorOf(data),
	}
	return c.recorder.ObjectState(o)
}

func colorOf(data []byte) string {
	c, _ := rawjson.String(rawjson.Lookup(data, "spec", "color"))
	return c
}

// checkAttempt compares one attempted write with the records. If the write was done, checkAttempt
// sets the times of the write in writes.
func (c *clientLog) checkAttempt(a writeAttempt, done map[string][]int, records []writeRecord, writes []checker.Write) {
	violation := func(what string) { c.violations = append(c.violations, fmt.Sprintf("%s: %+v", what, a)) }
	if a.mark == "" {
		c.checkDelete(a, done, records, writes)
		return
	}
	at := done[a.mark]
	switch {
	case len(at) > 1:
		violation("write done more than once")
	case a.outcome == outcomeAcknowledged && len(at) == 0:
		violation("acknowledged write is lost")
	case a.outcome == outcomeRefused && len(at) > 0:
		violation("refused write was done")
	}
	if len(at) == 0 {
		return
	}
	r, w := &records[at[0]], &writes[at[0]]
	w.Began = a.began
	switch {
	case a.outcome == outcomeAcknowledged && (r.version != a.version || r.key != a.key):
		violation(fmt.Sprintf("acknowledged write was done to %v at version %d", r.key, r.version))
	case a.from != 0 && r.beforeVersion != a.from:
		violation(fmt.Sprintf("conditional write replaced version %d", r.beforeVersion))
	case a.outcome == outcomeAcknowledged:
		w.Acked = a.ended
	}
}

// checkDelete is like checkAttempt, for a delete.
func (c *clientLog) checkDelete(a writeAttempt, done map[string][]int, records []writeRecord, writes []checker.Write) {
	if a.outcome != outcomeAcknowledged {
		// If several deletes of a key got no response, the records do not show which of them took
		// effect. Assume the delete that began first, which makes the check least strict.
		for i, r := range records {
			if r.key == a.key && r.after == nil && a.outcome == outcomeUnknown && writes[i].Acked == 0 &&
				(writes[i].Began == 0 || a.began < writes[i].Began) {
				writes[i].Began = a.began
			}
		}
		return
	}
	at := done["delete "+a.uid]
	if len(at) != 1 {
		c.violations = append(c.violations, fmt.Sprintf("acknowledged delete was done %d times: %+v", len(at), a))
		return
	}
	writes[at[0]].Began, writes[at[0]].Acked = a.began, a.ended
}

// checkReads checks that every read returned a state that is at least as new as all writes
// acknowledged before the read.
func (c *clientLog) checkReads(records []writeRecord) {
	versions := make(map[listwatch.Key][]writeRecord)
	for _, r := range records {
		versions[r.key] = append(versions[r.key], r)
	}
	acks := slices.DeleteFunc(slices.Clone(c.attempts),
		func(a writeAttempt) bool { return a.outcome != outcomeAcknowledged || a.version == 0 })
	slices.SortFunc(acks, func(a, b writeAttempt) int { return int(a.ended - b.ended) })
	slices.SortFunc(c.reads, func(a, b singleRead) int { return int(a.began - b.began) })
	oldest := listwatch.Version(0) // the oldest state that the read may return
	for _, read := range c.reads {
		for ; len(acks) > 0 && acks[0].ended < read.began; acks = acks[1:] {
			oldest = max(oldest, acks[0].version)
		}
		if !existedAt(versions[read.key], read.version, oldest) {
			c.violations = append(c.violations,
				fmt.Sprintf("stale read %+v: version %d was acknowledged before", read, oldest))
		}
	}
}

// existedAt reports whether an object had version v at some time since the database reached version
// oldest. If v is 0, it reports whether the object was missing at some time since then. records has
// all records of the object.
func existedAt(records []writeRecord, v, oldest listwatch.Version) bool {
	if v == 0 && (len(records) == 0 || records[0].version > oldest) {
		return true
	}
	for i, r := range records {
		matches := r.version == v && r.after != nil || v == 0 && r.after == nil
		if matches && (i == len(records)-1 || records[i+1].version > oldest) {
			return true
		}
	}
	return false
}
