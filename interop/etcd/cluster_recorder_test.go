package etcd

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A recorder records all writes of a cluster. It watches etcd directly, without a server or a
// proxy. Every revision of etcd is a write of the test, so the records are complete if their
// revisions have no gap.
type recorder struct {
	cluster  *cluster
	records  []writeRecord
	revision int64 // the records contain all writes up to this revision
}

// A writeRecord is one change of one key.
type writeRecord struct {
	version       listwatch.Version
	key           listwatch.Key
	before        []byte // nil if the object did not exist before
	after         []byte // nil if the write is a delete
	beforeVersion listwatch.Version
}

// keyPrefix is the prefix of the keys of all things in etcd, with the default layout of the store.
const keyPrefix = "/listwatch/things.example.com/"

// catchUp records all writes that were made before the call.
func (s *recorder) catchUp() error {
	for newest := s.cluster.revision(); s.revision < newest; {
		if err := s.read(newest); err != nil {
			return err
		}
	}
	return nil
}

// read records writes until it has recorded the given newest revision. It returns early if the
// watch ends.
func (s *recorder) read(newest int64) error {
	ctx, cancel := context.WithTimeout(s.cluster.Context(), waitTimeout)
	defer cancel()
	for got := range s.cluster.client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(s.revision+1),
		clientv3.WithFragment()) {
		if err := got.Err(); err != nil {
			return fmt.Errorf("record writes after revision %d: %w", s.revision, err)
		}
		for _, e := range got.Events {
			if err := s.record(e); err != nil {
				return err
			}
		}
		if s.revision >= newest {
			return nil
		}
	}
	return ctx.Err()
}

// record adds an event to the records.
func (s *recorder) record(e *clientv3.Event) error {
	r := writeRecord{version: listwatch.Version(e.Kv.ModRevision)}
	if next := e.Kv.ModRevision; next != s.revision && next != s.revision+1 {
		return fmt.Errorf("etcd's watch returned revision %d after %d", next, s.revision)
	}
	path, ours := strings.CutPrefix(string(e.Kv.Key), keyPrefix)
	var named bool
	if r.key.Namespace, r.key.Name, named = strings.Cut(path, "/"); !ours || !named {
		return fmt.Errorf("unexpected key %s", e.Kv.Key)
	}
	if e.Type == mvccpb.PUT {
		r.after = e.Kv.Value
	}
	s.revision = e.Kv.ModRevision
	s.records = append(s.records, r)
	return nil
}

// linkRecords sets the previous value in each record, and returns all records.
func (s *recorder) linkRecords() ([]writeRecord, error) {
	last := make(map[listwatch.Key]writeRecord)
	for i := range s.records {
		r := &s.records[i]
		before := last[r.key]
		if r.before, r.beforeVersion = before.after, before.version; r.before == nil && r.after == nil {
			return nil, fmt.Errorf("revision %d deletes %v, which does not exist", r.version, r.key)
		}
		last[r.key] = *r
	}
	return s.records, nil
}

// markOf returns spec.mark in the JSON of an object, or "" if the object has no mark. Each write
// has a different mark.
func markOf(data []byte) string {
	m, _ := rawjson.String(rawjson.Lookup(data, "spec", "mark"))
	return m
}

func uidOf(data []byte) string {
	u, _ := rawjson.String(rawjson.Lookup(data, "metadata", "uid"))
	return u
}
