// Package postgres serves tables of PostgreSQL as Sources. It follows PostgreSQL's log by logical
// replication, so it needs no triggers, and the programs that write the tables need no changes.
//
//	db, err := postgres.Open(ctx, "postgres://localhost/shop", postgres.Options{},
//		postgres.Table{Name: "orders", Namespace: "tenant", Labels: []string{"status"}})
//	http.Handle("/orders", &watchserver.Server{Source: db.Source("orders")})
//
// The database needs wal_level=logical, and the role needs REPLICATION and SELECT. docs/postgres.md
// describes the setup, the operation, and the alternative for databases without logical
// replication.
//
// # Guarantees
//
// A watch gives the guarantees of any Source: events arrive in the order of commits, and a watch
// resumes at any version, at any server of the same tables. In addition,
//   - a transaction becomes visible in one step, in all tables together; a client that was cut
//     inside it resumes at the next row;
//   - a crash of PostgreSQL never takes back what a watcher has seen, because only flushed log is
//     sent;
//   - a read of the newest state has every transaction that was acknowledged before, also with
//     synchronous_commit=off.
//
// # Versions
//
// The version of a row is 256 times the position in the log at the end of its transaction, or a
// little less for the rows before the last one. A row that has not changed since a server started
// has the version of that start. [Version] converts a position.
//
// # Writes
//
// [DB.Table] returns a table that clients can also write. A write is one transaction, whose
// precondition is the content of the row.
//
// # Documents
//
// [DB.Collection] keeps a collection in a table of the package's own, one row for each object, as
// the other stores do. Any number of servers can share it:
//
//	db, err := postgres.Open(ctx, "postgres://localhost/shop", postgres.Options{})
//	flags, err := db.Collection(store.CollectionSpec{Kind: "Flag"})
//
// # Interruptions
//
// After a lost connection, a change of a table's definition or a restart of PostgreSQL, the tables
// are read again. Watches continue with the difference, and do not see the states in between. A
// watch cannot start at a version between the two states: it is [listwatch.Expired].
//
// If a standby is promoted, versions start over, so all watches end; see [ErrReplaced].
package postgres
