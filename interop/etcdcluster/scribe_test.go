package etcdcluster

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A scribe reads what was written from etcd itself, past servers and proxies. Nothing but the writers changes etcd, so that revisions have no gaps: a
// record without a gap is complete.
type scribe struct {
	cluster *cluster
	records []record
	up      int64 // everything up to it is in records
}

// A record is one change of one key.
type record struct {
	version listwatch.Version
	key     listwatch.Key
	before  []byte // what was there; nil: nothing
	after   []byte // what is there; nil: nothing
	was     listwatch.Version
}

// dir is what all keys begin with, by the default layout.
const dir = "/listwatch/things.example.com/"

// catchUp reads everything that was written before the call.
func (s *scribe) catchUp() error {
	for newest := s.cluster.revision(); s.up < newest; {
		if err := s.read(newest); err != nil {
			return err
		}
	}
	return nil
}

// read reads from where the scribe is up to revision newest, or until the watch ends.
func (s *scribe) read(newest int64) error {
	ctx, cancel := context.WithTimeout(s.cluster.Context(), patience)
	defer cancel()
	for got := range s.cluster.raw.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(s.up+1), clientv3.WithFragment()) {
		if err := got.Err(); err != nil {
			return fmt.Errorf("the scribe at revision %d: %w", s.up, err)
		}
		for _, e := range got.Events {
			if err := s.take(e); err != nil {
				return err
			}
		}
		if s.up >= newest {
			return nil
		}
	}
	return ctx.Err()
}

// take takes an event down.
func (s *scribe) take(e *clientv3.Event) error {
	r := record{version: listwatch.Version(e.Kv.ModRevision)}
	if next := e.Kv.ModRevision; next != s.up && next != s.up+1 {
		return fmt.Errorf("etcd's watch has revision %d after %d", next, s.up)
	}
	path, ours := strings.CutPrefix(string(e.Kv.Key), dir)
	var named bool
	if r.key.Namespace, r.key.Name, named = strings.Cut(path, "/"); !ours || !named {
		return fmt.Errorf("who wrote %s?", e.Kv.Key)
	}
	if e.Type == mvccpb.PUT {
		r.after = e.Kv.Value
	}
	s.up = e.Kv.ModRevision
	s.records = append(s.records, r)
	return nil
}

// link finds out what was before each record, and returns them.
func (s *scribe) link() ([]record, error) {
	last := make(map[listwatch.Key]record)
	for i := range s.records {
		r := &s.records[i]
		before := last[r.key]
		if r.before, r.was = before.after, before.version; r.before == nil && r.after == nil {
			return nil, fmt.Errorf("revision %d deletes %v, which is not there", r.version, r.key)
		}
		last[r.key] = *r
	}
	return s.records, nil
}

// mark is what tells a write from all others; empty: there is none.
func mark(data []byte) string {
	m, _ := rawjson.String(rawjson.Lookup(data, "spec", "mark"))
	return m
}

func uid(data []byte) string {
	u, _ := rawjson.String(rawjson.Lookup(data, "metadata", "uid"))
	return u
}
