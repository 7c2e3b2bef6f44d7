package metrics

import (
	"time"
)

var (
	fileBytes      = newGauge("store_file_bytes", "Size of the file of the store.")
	fileFree       = newGauge("store_file_free_bytes", "Bytes of the file that are free for later writes.")
	etcdMembers    = newGauge("etcd_members", "Members of etcd that the store uses.")
	etcdHealthy    = newGauge("etcd_healthy_members", "Members of etcd that answered the last probes.")
	etcdUnfollowed = newGauge("etcd_collections_lost", "Collections whose watch of etcd is not open.")
	etcdLag        = newMaximum("etcd_lag_versions",
		"Revisions between the newest that this server has seen in etcd and the oldest of its collections.")
)

func (c *commitCounters) create(m *Metrics) {
	c.took = m.histogram("store_commit_duration_seconds", "Duration of a commit, which in a file is one sync.", seconds)
	c.batch = m.histogram("store_commit_writes", "Writes in one commit.",
		[]float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512})
	c.failed = m.counter("store_commit_failures_total", "Commits that failed.")
	c.failed.WithLabelValues() // starts at zero, so that the first failure is an increase
}

// Committed records a commit of a number of writes. It can be the hook Committed of bolt.Trace. The
// hook of etcd.Trace must call it with one write, because etcd commits each write separately.
func (m *Metrics) Committed(writes int, took time.Duration, err error) {
	m.commits.took.Observe(took.Seconds())
	if err != nil {
		m.commits.failed.WithLabelValues().Inc()
		return
	}
	m.commits.batch.Observe(float64(writes))
}

// StoreStats are the sizes and the health of a store. Fields that do not apply remain zero.
type StoreStats struct {
	// FileBytes is the size of the file of the store, and FreeBytes the part of it that is free.
	FileBytes, FreeBytes int64
	// Members is the number of members of etcd, and HealthyMembers the number of healthy ones.
	Members, HealthyMembers int
	// Lost is the number of collections whose watch of etcd is not open, and Lag the number of
	// revisions that the server lags behind etcd.
	Lost int
	Lag  int64
}

// AddStore measures a store. stats is called for each scrape, possibly concurrently.
func (m *Metrics) AddStore(stats func() StoreStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stores = append(m.stores, stats)
}

func (m *Metrics) collectStores(s *scrape) {
	for _, stats := range m.stores {
		st := stats()
		if st.FileBytes > 0 {
			s.set(fileBytes, float64(st.FileBytes))
			s.set(fileFree, float64(st.FreeBytes))
		}
		if st.Members > 0 {
			s.set(etcdMembers, float64(st.Members))
			s.set(etcdHealthy, float64(st.HealthyMembers))
			s.set(etcdUnfollowed, float64(st.Lost))
			s.set(etcdLag, float64(st.Lag))
		}
	}
}
