package etcd

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

// A cluster is an etcd of three members, each a separate process. Its methods must be called by the
// test's goroutine.
type cluster struct {
	*testing.T
	network       *memberNetwork
	members       []*etcdtest.Process
	memberClients []*clientv3.Client // one for each member
	ids           map[uint64]int     // the numbers of the members by their IDs
	client        *clientv3.Client   // for all members, without proxies
	down          map[int]bool       // the members that are killed or paused
	leaderChanges int                // the number of observed changes
	lastLeader    int                // the last observed leader
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		T: t, network: newMemberNetwork(t), ids: make(map[uint64]int), down: make(map[int]bool),
		lastLeader: -1,
	}
	c.members = etcdtest.StartCluster(t, 3, c.network.via)
	var urls []string
	for _, m := range c.members {
		urls = append(urls, m.URL)
		c.memberClients = append(c.memberClients, etcdtest.Dial(t, m.URL))
	}
	c.client = etcdtest.Dial(t, urls...)
	list, err := c.client.MemberList(t.Context())
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
	c.network.setMembers(names)
	return c
}

func (c *cluster) urls() []string { return c.client.Endpoints() }

// memberStatus returns the status of member i, or nil if it does not respond.
func (c *cluster) memberStatus(i int) *clientv3.StatusResponse {
	if c.down[i] {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	s, err := c.memberClients[i].Status(ctx, c.members[i].URL)
	if err != nil {
		return nil
	}
	return s
}

// logMembers logs the status of each member, even after the test has ended.
func (c *cluster) logMembers() {
	for i, client := range c.memberClients {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), time.Second)
		s, err := client.Status(ctx, c.members[i].URL)
		cancel()
		if err != nil {
			c.Logf("member %d: %v", i, err)
			continue
		}
		c.Logf("member %d, ID %x: leader %x, term %d, revision %d", i, s.Header.MemberId, s.Leader, s.RaftTerm,
			s.Header.Revision)
	}
}

// leader waits until a member reports a leader that is running, and returns the number of that
// leader. If the members disagree, the report with the newest term counts. leader ignores the
// member with the given number, both as a reporter and as a leader. A negative number ignores no
// member.
func (c *cluster) leader(without int) int {
	c.Helper()
	found := -1
	eventually(c, fmt.Sprintf("leader other than member %d", without), func() bool {
		var term uint64
		found = -1
		for i := range c.members {
			s := c.memberStatus(i)
			if i == without || s == nil || s.Leader == 0 || s.RaftTerm <= term {
				continue
			}
			if l, ok := c.ids[s.Leader]; ok && l != without && !c.down[l] {
				term, found = s.RaftTerm, l
			}
		}
		return found >= 0
	})
	if c.lastLeader >= 0 && c.lastLeader != found {
		c.leaderChanges++
	}
	c.lastLeader = found
	return found
}

func (c *cluster) killMember(i int) {
	c.down[i] = true
	c.members[i].Kill()
}

func (c *cluster) restartMember(i int) {
	c.Helper()
	c.members[i].Restart()
	c.down[i] = false
}

func (c *cluster) pauseMember(i int) {
	c.Helper()
	c.down[i] = true
	c.members[i].Pause()
}

func (c *cluster) resumeMember(i int) {
	c.Helper()
	c.members[i].Resume()
	c.down[i] = false
}

// waitUntilIsolated waits until member i, which is disconnected, has no leader.
func (c *cluster) waitUntilIsolated(i int) {
	c.Helper()
	eventually(c, fmt.Sprintf("loss of the leader at member %d", i), func() bool {
		s := c.memberStatus(i)
		return s != nil && s.Leader == 0
	})
}

// waitUntilCaughtUp waits until each member has applied everything that was committed before the
// call. A member that lags may be receiving a snapshot, which the next fault would interrupt.
func (c *cluster) waitUntilCaughtUp() {
	c.Helper()
	var committed uint64
	for i := range c.members {
		eventually(c, fmt.Sprintf("status of member %d", i), func() bool {
			s := c.memberStatus(i)
			if s != nil {
				committed = max(committed, s.RaftIndex)
			}
			return s != nil
		})
	}
	for i := range c.members {
		eventually(c, fmt.Sprintf("entries up to %d at member %d", committed, i), func() bool {
			s := c.memberStatus(i)
			return s != nil && s.RaftAppliedIndex >= committed
		})
	}
}

// revision returns the newest revision of etcd. It finds the revision with a linearizable read.
func (c *cluster) revision() int64 {
	c.Helper()
	var revision int64
	eventually(c, "revision of etcd", func() bool {
		ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
		defer cancel()
		got, err := c.client.Get(ctx, "/", clientv3.WithCountOnly())
		if err != nil {
			return false
		}
		revision = got.Header.Revision
		return true
	})
	return revision
}

// compact compacts the history before revision. After an error, the compaction may still take
// effect.
func (c *cluster) compact(revision int64) error {
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	_, err := c.client.Compact(ctx, revision)
	return err
}

// waitForCompaction waits until all running members have applied the compaction of the history
// before revision. It compacts again, because etcd may not have accepted an earlier request.
func (c *cluster) waitForCompaction(revision int64) {
	c.Helper()
	eventually(c, fmt.Sprintf("compaction of revision %d", revision-1), func() bool {
		err := c.compact(revision)
		return err == nil || errors.Is(err, rpctypes.ErrCompacted)
	})
	for i, client := range c.memberClients {
		eventually(c, fmt.Sprintf("compaction of revision %d at member %d", revision-1, i), func() bool {
			if c.down[i] {
				return true
			}
			ctx, cancel := context.WithTimeout(c.Context(), time.Second)
			defer cancel()
			_, err := client.Get(ctx, "/", clientv3.WithCountOnly(), clientv3.WithSerializable(),
				clientv3.WithRev(revision-1))
			return errors.Is(err, rpctypes.ErrCompacted)
		})
	}
}
