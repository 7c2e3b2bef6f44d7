package servecmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/tableflag"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchserver"
)

// postgresOptions contains the flags about PostgreSQL.
type postgresOptions struct {
	dsn         string
	publication string
	documents   string
	anchor      string
	tables      []string
	writable    bool
	exceptions  bool
}

func (o *postgresOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.dsn, "postgres", "",
		"`URL` of a PostgreSQL database with wal_level=logical, to keep objects in it, which several servers can share, or "+
			"to serve each --table; the password can be in PGPASSWORD or ~/.pgpass")
	f.StringVar(&o.documents, "postgres-documents", "",
		"`table` of --postgres for the objects of all resources, created if necessary; if empty, it is "+
			postgres.DefaultDocuments+", or none if there is a --table")
	f.StringVar(&o.anchor, "postgres-anchor", "",
		"replication `slot` that retains a minute of the log, created if necessary, so that watches miss nothing after a "+
			"lost connection; PostgreSQL also retains the log while no server runs")
	f.StringVar(&o.publication, "postgres-publication", postgres.DefaultPublication,
		"`publication` of the tables; created, and tables added to it, if the role may do so")
	f.BoolVar(&o.writable, "writable", false, "accept writes to each --table; the role needs INSERT, UPDATE and DELETE")
	f.BoolVar(&o.exceptions, "show-exceptions", false,
		"send clients the text of exceptions with which functions of the database refuse writes (RAISE EXCEPTION)")
	f.StringArrayVar(&o.tables, "table", nil, tableflag.Usage)
}

// parse returns the tables of the flags.
func (o *postgresOptions) parse() ([]tableflag.Table, error) {
	switch {
	case o.dsn == "" && len(o.tables) > 0:
		return nil, cli.Usagef("--table requires --postgres")
	case o.dsn == "" && o.documents != "":
		return nil, cli.Usagef("--postgres-documents requires --postgres")
	case o.dsn == "" && o.anchor != "":
		return nil, cli.Usagef("--postgres-anchor requires --postgres")
	case o.dsn == "" && o.exceptions:
		return nil, cli.Usagef("--show-exceptions requires --postgres")
	case o.writable && len(o.tables) == 0:
		return nil, cli.Usagef("--writable requires --table")
	}
	all, err := tableflag.ParseAll(o.tables)
	for i := range all {
		all[i].Resource.ReadOnly = !o.writable
	}
	return all, err
}

// hasDocuments reports whether the objects of all resources are in PostgreSQL.
func (o *postgresOptions) hasDocuments() bool {
	return o.dsn != "" && (o.documents != "" || len(o.tables) == 0)
}

// open opens the database. It returns nil if there is none. After open has returned, the end of ctx
// does not end the database, which must serve the last requests.
func (o *postgresOptions) open(
	ctx context.Context, l *listen.Listeners, history listwatch.Retention,
) (*postgres.DB, error) {
	tables, err := o.parse()
	if err != nil || o.dsn == "" {
		return nil, err
	}
	only := make([]postgres.Table, len(tables))
	for i, t := range tables {
		only[i] = t.Table
	}
	options := postgres.Options{
		Publication: o.publication, Documents: o.documents, Anchor: o.anchor, History: history, Writable: o.writable,
		ShowExceptions: o.exceptions, Trace: tableTrace(l),
	}
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	opening := context.AfterFunc(ctx, end)
	db, err := postgres.Open(lifetime, o.dsn, options, only...)
	if !opening() {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, withExitCode(fmt.Errorf("--postgres: %w", separate(err)))
	}
	l.Metrics.AddPostgres(func() metrics.PostgresStats { return postgresStats(db) })
	return db, nil
}

// A problemList is an error of several problems. Its text separates them.
type problemList struct {
	error
	problems []error
}

// separate returns err as a problemList if it joins several errors.
func separate(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) == 1 {
		return err
	}
	return problemList{err, joined.Unwrap()}
}

// Error implements error.
func (p problemList) Error() string {
	var text strings.Builder
	for _, problem := range p.problems {
		fmt.Fprintf(&text, "%v; ", problem)
	}
	return fmt.Sprintf("%s(%s doctor, with the same flags, prints one per line)", text.String(), cli.CommandName())
}

// Unwrap returns the joined errors.
func (p problemList) Unwrap() error { return p.error }

// addTables adds the tables to the API.
func (o *postgresOptions) addTables(db *postgres.DB, l *listen.Listeners, api *kubeapi.Handler) error {
	tables, err := o.parse()
	if err != nil {
		return err
	}
	for _, t := range tables {
		c := db.Table(t.Table.Name, t.CollectionSpec())
		if err := api.Add(t.Resource, c); err != nil {
			return cli.Usagef("--table %s: %w", t.Table.Name, err)
		}
		l.Metrics.AddCollection(watchserver.Resource{Group: t.Group, Version: t.Version, Name: t.Plural}, c)
	}
	return nil
}

func postgresStats(db *postgres.DB) metrics.PostgresStats {
	s := db.Stats()
	return metrics.PostgresStats{
		Following: db.Ready() == nil, Lag: s.Lag, LagBytes: s.LagBytes, RetainedBytes: s.RetainedBytes,
		Hidden: s.Hidden, Loads: uint64(s.Loads), Resumes: uint64(s.Resumes),
		Transactions: s.Transactions, Changes: s.Changes,
	}
}

// tableTrace logs what happens to the tables.
func tableTrace(l *listen.Listeners) *postgres.Trace {
	return &postgres.Trace{
		Reading: func(table string, rows int) { l.Progress(fmt.Sprintf("%s: %d rows read", table, rows)) },
		Loaded: func(rows, changed int, took time.Duration) {
			l.Log.Info("read the tables", "rows", rows, "changed", changed, "took", took.Round(time.Millisecond))
		},
		Lost:    func(reason error) { l.Log.Warn("reading the tables again", "reason", cli.OneLine(reason)) },
		Resumed: func() { l.Log.Info("the tables need not be read: the anchor has the log") },
		Waiting: func(pid int, application string, age time.Duration) {
			l.Progress(fmt.Sprintf("waiting for a transaction of %s (pid %d)", application, pid))
			l.Log.Warn("waiting for the end of an older transaction",
				"pid", pid, "application", application, "age", age)
		},
		RowHidden: func(table, row string, reason error) {
			l.Log.Warn("clients do not see a row, because it is not an object",
				"table", table, "row", row, "reason", reason)
		},
		TableFailed: func(table string, reason error) {
			l.Log.Error("a table can no longer be served", "table", table, "reason", reason)
		},
	}
}
