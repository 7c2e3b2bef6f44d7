package etcd

import (
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The rhythm of probes.
const (
	probeEvery = time.Second
	// sickAfter is how many probes in a row must fail before a member is left.
	sickAfter = 2
)

// health keeps requests and watches away from members that do not answer, or that are cut off from the others: a client of etcd gives each member its
// turn as long as there is a connection, and whoever asks one that has lost its peers waits in vain.
type health struct {
	// Immutable after construction.
	all    []string
	probes []*clientv3.Client // one for each of all
	use    func(endpoints ...string)

	// Owned by run.
	failures []int
	used     []string
}

// watchHealth probes the members until life ends, where there is more than one.
func (db *DB) watchHealth() error {
	all := db.options.Endpoints
	if len(all) < 2 {
		return nil
	}
	h := &health{all: all, use: db.client.SetEndpoints, failures: make([]int, len(all)), used: all}
	for _, e := range all {
		o := db.options
		o.Endpoints = []string{e}
		c, err := newClient(o)
		if err != nil {
			h.close()
			return err
		}
		h.probes = append(h.probes, c)
	}
	db.work.Go(func() {
		defer h.close()
		h.run(db.life, db.options.Prefix+"/")
	})
	return nil
}

func (h *health) close() {
	for _, c := range h.probes {
		_ = c.Close() // it is of no use any more, whatever it says
	}
}

func (h *health) run(ctx context.Context, key string) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var probing sync.WaitGroup
		for i, c := range h.probes {
			probing.Go(func() {
				// Linearized: a member without a leader can't answer.
				limited, cancel := context.WithTimeout(ctx, probeEvery)
				defer cancel()
				if _, err := c.Get(limited, key, clientv3.WithCountOnly()); err != nil {
					h.failures[i]++
				} else {
					h.failures[i] = 0
				}
			})
		}
		probing.Wait()
		h.choose()
	}
}

// choose has the members used that answer; all those of before where none does.
func (h *health) choose() {
	var well []string
	for i, e := range h.all {
		if h.failures[i] < sickAfter {
			well = append(well, e)
		}
	}
	if len(well) > 0 && !slices.Equal(well, h.used) {
		h.used = well
		h.use(well...)
	}
}
