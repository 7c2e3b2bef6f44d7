package metrics

import "time"

var (
	fileBytes      = newGauge("store_file_bytes", "Size of the file of the store.")
	fileFree       = newGauge("store_file_free_bytes", "Bytes of the file that are free for later writes.")
	etcdMembers    = newGauge("etcd_members", "Members of etcd that the store uses.")
	etcdHealthy    = newGauge("etcd_healthy_members", "Members of etcd that answered the last probes.")
	etcdUnfollowed = newGauge("etcd_collections_lost", "Collections whose watch of etcd is not open.")
	etcdLag        = newMaximum("etcd_lag_versions",
		"Revisions between the newest that this server has seen in etcd and the oldest of its collections.")

	tablesFollowed = newGauge("postgres_following", "1 if the server follows the tables of PostgreSQL, otherwise 0.")
	tablesLag      = newMaximum("postgres_lag_seconds",
		"Time for which the server has not reached a position that PostgreSQL's log has reached.")
	tablesBehind = newMaximum("postgres_lag_bytes",
		"Length of PostgreSQL's log between the state of the server and the position at the last check.")
	tablesRetained = newGauge("postgres_retained_bytes", "Length of the log that PostgreSQL retains for the server.")
	tablesHidden   = newGauge("postgres_hidden_rows", "Rows that clients do not see, because they are not objects.")
	tablesLoads    = newCounter("postgres_loads_total",
		"Times that the server has read all tables. Each time after the first follows an interruption.")
	tablesResumes = newCounter("postgres_resumes_total",
		"Times that the server has followed the log again without reading the tables.")
	tablesTransactions = newCounter("postgres_transactions_total", "Transactions of PostgreSQL that were received.")
	tablesChanges      = newCounter("postgres_changes_total", "Changes of objects by these transactions.")
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

// PostgresStats is the progress of a server that follows tables of PostgreSQL. The fields are those
// of postgres.Stats, in the module store/postgres.
type PostgresStats struct {
	Following               bool
	Lag                     time.Duration
	LagBytes, RetainedBytes uint64
	Hidden                  int
	Loads, Resumes          uint64
	Transactions, Changes   uint64
}

// AddPostgres measures a server that follows tables of PostgreSQL. stats is called for each scrape,
// possibly concurrently.
func (m *Metrics) AddPostgres(stats func() PostgresStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tables = append(m.tables, stats)
}

func (m *Metrics) collectTables(s *scrape) {
	for _, stats := range m.tables {
		st := stats()
		s.set(tablesFollowed, boolean(st.Following))
		s.set(tablesLag, st.Lag.Seconds())
		s.set(tablesBehind, float64(st.LagBytes))
		s.set(tablesRetained, float64(st.RetainedBytes))
		s.set(tablesHidden, float64(st.Hidden))
		s.set(tablesLoads, float64(st.Loads))
		s.set(tablesResumes, float64(st.Resumes))
		s.set(tablesTransactions, float64(st.Transactions))
		s.set(tablesChanges, float64(st.Changes))
	}
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
