package postgres

import (
	"cmp"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/hooks"
)

// A Table is a table to serve. Only Name is required. Each row becomes an object, whose name is the
// primary key of the row, without the column of the namespace. The values of several columns are
// joined by dots.
type Table struct {
	// Name is the name of the table as in SQL, with or without a schema: "orders", "shop.orders".
	Name string
	// APIVersion and Kind are the type of the objects. If empty, they are "v1" and the name of the
	// table without its schema.
	APIVersion, Kind string
	// Namespace is a column that becomes metadata.namespace. If empty, the objects have no
	// namespaces.
	Namespace string
	// Labels are columns that become labels with their names. A row in which the column is NULL has
	// no such label.
	Labels []string
	// LabelsFrom is a json or jsonb column that holds the labels as an object of strings. It takes
	// the place of Labels.
	LabelsFrom string
	// UID and Created are columns that become metadata.uid and metadata.creationTimestamp. kubectl
	// needs a uid.
	UID, Created string
	// Spec is a json or jsonb column that becomes the spec. If empty, the spec has a member for
	// each column.
	Spec string
	// Columns are the columns to show, in addition to those named above. If empty, all columns are
	// shown. The primary key is always read.
	Columns []string
	// Fields are the paths that field selectors may use, such as "spec.status".
	Fields []string
	// Verify checks each object before it is shown. A row for which it returns an error is hidden;
	// see [Trace.RowHidden]. If nil, all objects are shown.
	Verify func(*listwatch.Object) error

	// The columns with the name of the collection, and with the whole object, of Options.Documents.
	collection, document string
}

// DefaultPublication is the name of the publication if [Options.Publication] is empty.
const DefaultPublication = "listwatch"

// DefaultDocuments is the table of documents if [Options.Documents] is empty and no tables are
// opened.
const DefaultDocuments = "listwatch_objects"

// Options configure a [DB]. The zero Options are usable.
type Options struct {
	// Publication is the publication that the tables belong to. If it is missing, Open creates it,
	// and it adds tables that the publication lacks, provided that the role may do so. If empty,
	// DefaultPublication is used.
	Publication string
	// Documents is the table for the objects of [DB.Collection], with or without a schema. If it is
	// missing, Open creates it. If empty, DefaultDocuments is used if Open has no tables, and
	// otherwise there are no documents.
	Documents string
	// History limits the history of each table and collection in memory.
	History listwatch.Retention
	// Anchor is a permanent replication slot, which all servers of the database share, and no other
	// database of the cluster. With it, a server that has lost its connection continues where it
	// was, so that clients see every transaction. If it is missing, the first server creates it.
	// PostgreSQL keeps the log for it while no server runs; limit that with max_slot_wal_keep_size.
	// If Anchor is empty, the tables are read again after a lost connection.
	Anchor string
	// AnchorAge is the time for which the anchor retains the log at least. If it is not positive, a
	// minute is used.
	AnchorAge time.Duration
	// SchemaInterval is the time between two checks for changes of the tables that the log does not
	// report, such as a new column. If zero, it is 5 seconds. With a negative value, there are no
	// checks.
	SchemaInterval time.Duration
	// MaxRows is the number of rows above which Open refuses a table, because all rows are held in
	// memory. If zero, it is 5,000,000. A negative value means no limit.
	MaxRows int
	// Writable makes Open fail if the role may not insert, update and delete rows of the tables. It
	// is of use for a program that calls [DB.Collection].
	Writable bool
	// ShowExceptions sends clients the text of an exception that a function of the database raises
	// to refuse a write (RAISE EXCEPTION, SQLSTATE P0001). The text may contain values that the
	// client must not see, so check the functions before. If false, clients receive a fixed text.
	ShowExceptions bool
	// Trace receives events of the connection and the tables. If nil, they are dropped.
	Trace *Trace
}

func (o Options) withDefaults() Options {
	o.Publication = cmp.Or(o.Publication, DefaultPublication)
	if o.AnchorAge <= 0 {
		o.AnchorAge = time.Minute
	}
	o.SchemaInterval = cmp.Or(o.SchemaInterval, 5*time.Second)
	o.MaxRows = cmp.Or(o.MaxRows, 5_000_000)
	o.Trace = hooks.Fill(o.Trace)
	return o
}

// A Trace has hooks for events between a [DB] and PostgreSQL. A hook may be nil. The hooks must be
// safe for concurrent use and must return quickly. Errors contain text from PostgreSQL and of rows,
// so show them only to operators.
type Trace struct {
	// Reading is called while a table is read, with the number of rows read so far.
	Reading func(table string, rows int)
	// Loaded is called when all tables were read at the same time. changed is the number of objects
	// that were different from those served before.
	Loaded func(rows, changed int, took time.Duration)
	// Lost is called when the log can no longer be followed, with the reason: the connection was
	// lost, or a table has changed in a way that the log does not describe. Then the tables are
	// read again, or the log is followed from the same position with the anchor.
	Lost func(reason error)
	// Resumed is called when the log is followed again from the position at which the connection
	// was lost.
	Resumed func()
	// Waiting is called every few seconds while the start waits for the end of an older
	// transaction.
	Waiting func(pid int, application string, age time.Duration)
	// RowHidden is called for a row that clients do not see, because it is not an object: it is not
	// valid, Table.Verify refuses it, or it is a document of another kind or name than its columns
	// say. It is called again after each change that leaves the row hidden. The row is named by its
	// namespace and name. While a table is read, only the first ten rows that were not hidden
	// before are reported. Stats.Hidden has the number of all.
	RowHidden func(table, row string, reason error)
	// TableFailed is called when a table can no longer be served. The other tables are still
	// served.
	TableFailed func(table string, reason error)
}
