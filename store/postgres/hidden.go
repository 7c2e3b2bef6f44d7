package postgres

import (
	"errors"

	"github.com/listwatch/listwatch"
)

// hiddenRows are the rows of a table that clients do not see, by the key that their objects would
// have. They are the rows that are not objects, and all documents of a collection that is not
// declared yet.
type hiddenRows map[listwatch.Key]hiddenRow

type hiddenRow struct {
	// values are kept because an update does not send the large values that it leaves as they are.
	values  tuple
	version listwatch.Version
	reason  error // errUndeclared, or why the row is not an object
}

var errUndeclared = errors.New("its collection is not declared")

// maxHiddenReports is the number of rows that are reported when a table was read.
const maxHiddenReports = 10

func (t *table) reportHidden(key listwatch.Key, row hiddenRow) {
	if row.reason != errUndeclared {
		t.trace.RowHidden(t.String(), key.String(), row.reason)
	}
}
