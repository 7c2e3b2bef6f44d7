package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// An lsn is a position in PostgreSQL's log, in bytes since its beginning.
type lsn uint64

// versionsPerByte is the number of versions for each byte of the log. A commit record has at least
// 34 bytes, so thousands of rows of one transaction get versions of their own, and a client that
// loses its connection inside a transaction resumes at the next row.
const versionsPerByte = 256

// version returns the version that covers all transactions that ended at or before l.
func (l lsn) version() listwatch.Version { return listwatch.Version(l * versionsPerByte) }

// String returns l in the form of PostgreSQL, such as 16/B374D848.
func (l lsn) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }

func parseLSN(text string) (lsn, error) {
	high, low, ok := strings.Cut(text, "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%q is no LSN: want a form such as 16/B374D848", text)
	}
	return lsn(h<<32 | l), nil
}

// Version returns the version that covers all transactions that ended at or before a position in
// PostgreSQL's log, such as the result of pg_current_wal_insert_lsn() after a COMMIT. A program
// that writes by SQL gives this version to its client, which then requests a state that is not
// older. In SQL it is (pg_current_wal_insert_lsn() - '0/0') * 256. If position is not an LSN, the
// error has code [listwatch.Invalid].
func Version(position string) (listwatch.Version, error) {
	l, err := parseLSN(position)
	if err != nil {
		return 0, &listwatch.Error{Code: listwatch.Invalid, Op: "postgres", Message: err.Error()}
	}
	return l.version(), nil
}
