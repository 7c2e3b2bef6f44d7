package etcdcluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

// A cluster is three members of etcd, each a process. Its methods are for the goroutine of the test.
type cluster struct {
	*testing.T
	network *network
	members []*etcdtest.Process
	each    []*clientv3.Client // of one member
	ids     map[uint64]int
	raw     *clientv3.Client // of all members, past all proxies
	down    map[int]bool     // members that are killed or stand still
	changes int              // how often another leader was seen
	last    int              // the leader seen last
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, network: newNetwork(t), ids: make(map[uint64]int), down: make(map[int]bool), last: -1}
	c.members = etcdtest.StartCluster(t, 3, c.network.via)
	var urls []string
	for _, m := range c.members {
		urls = append(urls, m.URL)
		c.each = append(c.each, etcdtest.Dial(t, m.URL))
	}
	c.raw = etcdtest.Dial(t, urls...)
	list, err := c.raw.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]int)
	for _, m := range list.Members {
		i, err := strconv.Atoi(strings.TrimPrefix(m.Name, "m"))
		if err != nil {
			t.Fatal(err)
		}
		c.ids[m.ID], names[strconv.FormatUint(m.ID, 16)] = i, i
	}
	c.network.know(names)
	return c
}

// status is what member i says, or nil.
func (c *cluster) status(i int) *clientv3.StatusResponse {
	if c.down[i] {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	s, err := c.each[i].Status(ctx, c.members[i].URL)
	if err != nil {
		return nil
	}
	return s
}

// leader waits until the members but not without have a leader among them, and returns it. Negative: none is left out.
func (c *cluster) leader(without int) int {
	c.Helper()
	found := -1
	c.eventually(fmt.Sprintf("a leader that is not member %d", without), func() bool {
		var term uint64
		found = -1
		for i := range c.members {
			s := c.status(i)
			if i == without || s == nil || s.Leader == 0 || s.RaftTerm <= term {
				continue
			}
			if l, ok := c.ids[s.Leader]; ok && l != without && !c.down[l] {
				term, found = s.RaftTerm, l
			}
		}
		return found >= 0
	})
	if c.last >= 0 && c.last != found {
		c.changes++
	}
	c.last = found
	return found
}

// eventually waits until done.
func (c *cluster) eventually(what string, done func() bool) {
	c.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			c.Fatalf("%s: not within %v", what, patience)
		case <-c.Context().Done():
			c.Fatal(context.Cause(c.Context()))
		}
	}
}

func (c *cluster) kill(i int) {
	c.down[i] = true
	c.members[i].Kill()
}

func (c *cluster) restart(i int) {
	c.Helper()
	c.members[i].Restart()
	c.down[i] = false
}

func (c *cluster) pause(i int) {
	c.Helper()
	c.down[i] = true
	c.members[i].Pause()
}

func (c *cluster) resume(i int) {
	c.Helper()
	c.members[i].Resume()
	c.down[i] = false
}

// isolated waits until member i, which is cut off, has given its leader up.
func (c *cluster) isolated(i int) {
	c.Helper()
	c.eventually(fmt.Sprintf("member %d has no leader", i), func() bool {
		s := c.status(i)
		return s != nil && s.Leader == 0
	})
}

// revision returns the newest revision, by a linearized read.
func (c *cluster) revision() int64 {
	c.Helper()
	var revision int64
	c.eventually("etcd tells its revision", func() bool {
		ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
		defer cancel()
		got, err := c.raw.Get(ctx, "/", clientv3.WithCountOnly())
		if err != nil {
			return false
		}
		revision = got.Header.Revision
		return true
	})
	return revision
}

// compact makes etcd forget what was before revision; false: it did not say that it has.
func (c *cluster) compact(revision int64) bool {
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	_, err := c.raw.Compact(ctx, revision)
	return err == nil
}

// forgotten waits until no member that is up has what was before revision any more: they get to hear of a compaction one after the other.
func (c *cluster) forgotten(revision int64) {
	c.Helper()
	for i, client := range c.each {
		c.eventually(fmt.Sprintf("member %d has compacted revision %d", i, revision-1), func() bool {
			if c.down[i] {
				return true
			}
			ctx, cancel := context.WithTimeout(c.Context(), time.Second)
			defer cancel()
			_, err := client.Get(ctx, "/", clientv3.WithCountOnly(), clientv3.WithSerializable(), clientv3.WithRev(revision-1))
			return errors.Is(err, rpctypes.ErrCompacted)
		})
	}
}
