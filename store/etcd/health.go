package etcd

import (
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// probeInterval is the time between two probes of a member, and the timeout of each.
	probeInterval = time.Second
	// maxFailedProbes is the number of consecutive failed probes after which the client
	// stops using a member.
	maxFailedProbes = 2
)

// healthChecks keep requests and watches away from members that do not respond or have lost
// their peers. The client of etcd uses every member that it has a connection to, so
// requests to a member without peers would time out.
type healthChecks struct {
	// Immutable after construction.
	endpoints []string
	clients   []*clientv3.Client // one per endpoint
	use       func(endpoints ...string)

	// Owned by run.
	failures []int // consecutive failed probes, per endpoint
	used     []string
}

// startHealthChecks probes the members until db is closed, if there is more than one.
func (db *DB) startHealthChecks() error {
	endpoints := db.options.Endpoints
	if len(endpoints) < 2 {
		return nil
	}
	h := &healthChecks{endpoints: endpoints, use: db.client.SetEndpoints, failures: make([]int, len(endpoints)), used: endpoints}
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
				// The read is linearized, so that it fails at a member without a leader.
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
	if len(healthy) > 0 && !slices.Equal(healthy, h.used) {
		h.used = healthy
		h.use(healthy...)
	}
}
