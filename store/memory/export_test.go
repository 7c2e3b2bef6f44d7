package memory

import "time"

// SetClock sets the clock of the TTLs in the collections that are added to db later.
func SetClock(db *DB, now func() time.Time) { db.now = now }
