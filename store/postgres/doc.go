// Package postgres shows the rows of PostgreSQL tables as Sources, without a trigger and without a
// change for those who write them. It follows PostgreSQL's log by logical replication.
//
//	db, err := postgres.Open(ctx, "postgres://localhost/shop", postgres.Options{},
//		postgres.Table{Name: "orders", Namespace: "tenant", Labels: []string{"status"}})
//	http.Handle("/orders", &watchserver.Server{Source: db.Source("orders")})
//
// The database needs wal_level=logical, and the role REPLICATION and SELECT. docs/postgres.md has
// the setup, the operation, and what to use instead where that cannot be had.
//
// # Guarantees
//
// A watch is that of any Source: in the order of commits, and it resumes at any version, at any
// server of the same tables. In addition,
//   - a transaction becomes visible in one step, in all tables together; a client that was cut
//     inside it resumes at the next row;
//   - what a watcher has seen no crash of PostgreSQL takes back, because only flushed log is sent;
//   - a read of the newest state has every transaction that was acknowledged before, also with
//     synchronous_commit=off.
//
// # Versions
//
// The version of a row is 256 times the position in the log at the end of its transaction, or a
// little less for the rows before the last one. A row that has not changed since a server started
// has the version of that start. [Version] converts a position.
//
// # Interruptions
//
// After a lost connection, a change of a table's definition or a restart of PostgreSQL, the tables
// are read again, and watches continue with the difference. They do not see states in between. What
// happened between the two states has versions at which nothing can start ([listwatch.Expired]).
//
// The version of a promoted standby starts over, so that all watches end; see [ErrReplaced].
package postgres
