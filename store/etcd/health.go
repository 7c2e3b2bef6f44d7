package etcd

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
)

const (
	// probeInterval is the time between two probes of a member, and the timeout of each.
	probeInterval = time.Second
	// maxFailedProbes is the number of consecutive failed probes after which the client
	// stops using a member.
	maxFailedProbes = 2
)

// Health describes the connection of a DB to etcd.
type Health struct {
	// Members is the number of endpoints. HealthyMembers is the number of endpoints that answered
	// at least one of the last two probes. A single endpoint is not probed and counts as healthy
	// while every collection follows etcd.
	Members, HealthyMembers int
	// Collections is the number of collections, and Following the number of collections whose watch
	// of etcd is open.
	Collections, Following int
	// Revision is the newest revision that a read or write of this server has seen, and Version
	// the version that every collection has reached. If Version is smaller, this server lags.
	Revision, Version listwatch.Version
}

// Health returns the current health of db. It sends no request.
func (db *DB) Health() Health {
	h := Health{
		Members: len(db.options.Endpoints), Revision: listwatch.Version(db.cluster.minRevision()),
		Version: db.Version(),
	}
	for _, b := range db.all() {
		h.Collections++
		if b.following.Load() {
			h.Following++
		}
	}
	switch {
	case db.health != nil:
		h.HealthyMembers = int(db.health.healthy.Load())
	case h.Following == h.Collections:
		h.HealthyMembers = h.Members
	}
	return h
}

// healthChecks keep requests and watches away from members that do not respond or have lost
// their peers. The client of etcd uses every member that it has a connection to, so
// requests to a member without peers would time out.
type healthChecks struct {
	// Immutable after construction.
	endpoints []string
	clients   []*clientv3.Client // one per endpoint
	use       func(endpoints ...string)

	healthy atomic.Int32 // the number of healthy members

	// Owned by run.
	failures []int // consecutive failed probes, per endpoint
	used     []string
}

// startHealthChecks starts to probe the members until db is closed, if there is more than one
// member.
func (db *DB) startHealthChecks() error {
	endpoints := db.options.Endpoints
	if len(endpoints) < 2 {
		return nil
	}
	h := &healthChecks{
		endpoints: endpoints, use: db.client.SetEndpoints, failures: make([]int, len(endpoints)), used: endpoints,
	}
	for _, e := range endpoints {
		o := db.options
		o.Endpoints = []string{e}
		c, err := newClient(o)
		if err != nil {
			h.close()
			return err
		}
		h.clients = append(h.clients, c)
	}
	h.healthy.Store(int32(len(endpoints)))
	db.health = h
	db.goroutines.Go(func() {
		defer h.close()
		h.run(db.lifetime, db.options.Prefix+"/")
	})
	return nil
}

func (h *healthChecks) close() {
	for _, c := range h.clients {
		_ = c.Close() // it was only used for probes
	}
}

func (h *healthChecks) run(ctx context.Context, key string) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var probes sync.WaitGroup
		for i, c := range h.clients {
			probes.Go(func() {
				// The read is linearizable, so it fails at a member without a leader.
				limited, cancel := context.WithTimeout(ctx, probeInterval)
				defer cancel()
				if _, err := c.Get(limited, key, clientv3.WithCountOnly()); err != nil {
					h.failures[i]++
				} else {
					h.failures[i] = 0
				}
			})
		}
		probes.Wait()
		h.choose()
	}
}

// choose makes the client use only the healthy members. If no member is healthy, it changes
// nothing.
func (h *healthChecks) choose() {
	var healthy []string
	for i, e := range h.endpoints {
		if h.failures[i] < maxFailedProbes {
			healthy = append(healthy, e)
		}
	}
	h.healthy.Store(int32(len(healthy)))
	if len(healthy) > 0 && !slices.Equal(healthy, h.used) {
		h.used = healthy
		h.use(healthy...)
	}
}
