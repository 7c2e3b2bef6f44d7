package bolt

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/atomicfile"
)

// restoreGap is added to the version of a restored database if the wall clock is behind it.
// It must be more than the number of writes made since the backup.
const restoreGap = 1 << 32

// startNewEpoch gives a restored database another epoch, drops its history, raises its version and
// removes the mark of a backup. now is the wall clock, which becomes the new version. If the clock
// is behind the old version, the version grows by restoreGap instead. Clients that support epochs
// list again because the epoch has changed. All other clients list again because their versions are
// older than the history.
func (db *DB) startNewEpoch(now listwatch.Version) error {
	epoch, last := rand.Text(), now
	if last <= db.last {
		last = db.last + restoreGap
	}
	err := catchPanic(func() error {
		return db.file.Update(func(tx *bbolt.Tx) error {
			if err := dropHistory(tx, last); err != nil {
				return err
			}
			b, key := tx.Bucket(headerBucket), keyOf(last)
			return errors.Join(
				dropLifetimes(b), b.Put(lastKey, key[:]), b.Put(epochKey, []byte(epoch)), b.Delete(backupKey))
		})
	})
	if err == nil {
		db.epoch, db.last = epoch, last
	}
	return err
}

// dropHistory raises the floor of every collection to v. v must not be lower than the
// newest version.
func dropHistory(tx *bbolt.Tx, v listwatch.Version) error {
	var trims []trim
	prefix := floorKey("")
	c := tx.Bucket(headerBucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		name := string(k[len(prefix):])
		if !strings.HasSuffix(name, departuresOf("")) {
			trims = append(trims, trim{backend: &backend{name: name}, floor: v, horizon: v, maxSteps: math.MaxInt})
		}
	}
	for i := range trims {
		if err := trims[i].run(tx); err != nil {
			return err
		}
	}
	return nil
}

// Backup writes a consistent copy of the database, history included, to a file at path. It replaces
// a file that exists there, once the copy is complete and on disk. Writes continue meanwhile,
// except that a write waits if the database file must grow for it. The copy is marked as a backup:
// Open refuses it without Options.RestoredFromBackup.
func (db *DB) Backup(path string) error {
	db.mu.Lock()
	if db.file == nil {
		db.mu.Unlock()
		return errClosed()
	}
	if db.file.isOverwritten() {
		db.mu.Unlock()
		return errOverwritten()
	}
	tx, err := db.file.Begin(false)
	db.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a read has nothing to roll back
	return catchPanic(func() error { return writeCopy(tx, path) })
}

// BackupFile is like [DB.Backup], for the file of a database that no process has open. If a process
// has it open, the error has code Unavailable.
func BackupFile(file, path string) error {
	f, _, err := openBolt(file, true, time.Millisecond)
	if err != nil {
		return openError(file, markUnreadable(err))
	}
	err = catchPanic(func() error {
		return f.View(func(tx *bbolt.Tx) error {
			if _, err := readHeader(tx); err != nil {
				return err
			}
			return writeCopy(tx, path)
		})
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return openError(file, err)
	}
	return nil
}

// writeCopy writes the database of tx to path, and marks it as a backup.
func writeCopy(tx *bbolt.Tx, path string) error {
	return atomicfile.Write(path, func(f *os.File) error {
		if _, err := tx.WriteTo(f); err != nil {
			return err
		}
		return markAsBackup(f.Name(), time.Now())
	})
}

// markAsBackup writes into the database at path that it is a backup made at the given time.
func markAsBackup(path string, at time.Time) error {
	f, _, err := openBolt(path, false, time.Second)
	if err != nil {
		return err
	}
	f.NoSync = true // atomicfile.Write syncs the file
	err = f.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(headerBucket).Put(backupKey, at.UTC().AppendFormat(nil, time.RFC3339))
	})
	return errors.Join(err, f.Close())
}

// Size returns the size of the file, and the bytes in it that are free for later writes. Both are
// zero after Close. It waits for a transaction in progress.
func (db *DB) Size() (bytes, free int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.file == nil {
		return 0, 0
	}
	info, err := db.file.handle.Stat()
	if err != nil {
		return 0, 0
	}
	return info.Size(), db.freeBytes()
}

// freeBytes returns the size of the free pages. The caller must hold db.mu, except during Open.
func (db *DB) freeBytes() int64 {
	return int64(db.file.Stats().FreePageN) * int64(db.file.pageSize)
}

// shrinkBatchBytes is the number of bytes that one transaction of a shrink copies.
const shrinkBatchBytes = 4 << 20

// Shrink rewrites the file without its free pages. Writes reuse free pages but never return them
// to the file system; only Shrink does, and Open if the free pages exceed
// [Options].ShrinkThreshold. Writes wait until Shrink has finished; reads do not. The directory
// needs space for the new file. If Shrink fails, the contents of the database are unchanged.
func (db *DB) Shrink() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.file == nil {
		return errClosed()
	}
	if db.damage != nil {
		return db.damage
	}
	if err := db.shrink(); err != nil {
		return writeError(db.realPath, err)
	}
	return nil
}

// shrinkAboveThreshold shrinks the file if its free bytes exceed Options.ShrinkThreshold and half
// of the file. It ignores errors of the shrink other than damage, because a full disk or a
// read-only directory must not keep the database from opening.
func (db *DB) shrinkAboveThreshold() error {
	threshold := db.options.ShrinkThreshold
	if threshold < 0 {
		return nil
	}
	free := db.freeBytes()
	info, err := os.Stat(db.realPath)
	if err != nil || free <= threshold || free <= info.Size()/2 {
		return err
	}
	err = db.shrink()
	if _, ok := errors.AsType[damagedError](err); ok {
		return err
	}
	return nil
}

// shrink replaces the file with a copy. It keeps both files locked until the copy has replaced the
// old file, so that no other process can open the old file.
func (db *DB) shrink() error {
	next, temporary, err := openTemporary(db.realPath)
	if err != nil {
		return err
	}
	next.NoSync = true // until the copy is complete
	err = catchPanic(func() error { return bbolt.Compact(next.DB, db.file.DB, shrinkBatchBytes) })
	next.NoSync = false
	if err == nil {
		err = next.Sync()
		next.remember()
	}
	if err == nil {
		err = db.copyMode(temporary)
	}
	if err == nil {
		err = os.Rename(temporary, db.realPath)
	}
	if err != nil {
		removeErr := os.Remove(temporary)
		if errors.Is(removeErr, fs.ErrNotExist) {
			removeErr = nil
		}
		return errors.Join(err, next.Close(), removeErr)
	}
	err = db.file.Close()
	db.file = next
	return errors.Join(err, atomicfile.SyncDirectory(db.realPath))
}

// Rewrite reads everything in the file through [Options].Transformer and stores it again. Once it
// has returned nil, the Transformer no longer needs the keys with which it only decrypts. Other
// writes can happen meanwhile. If Rewrite fails, a part of the file is as before, and Rewrite can
// be called again.
func (db *DB) Rewrite() error {
	r := rewriting{db: db, bucket: bucketOf("")}
	for !r.done {
		if err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// copyMode gives the file with the given name the permissions of the database. It fails if
// the path of the database now names another file, such as a backup, which must not be
// replaced.
func (db *DB) copyMode(name string) error {
	if err := db.checkFile(); err != nil {
		return err
	}
	info, err := db.file.handle.Stat()
	if err != nil {
		return err
	}
	return os.Chmod(name, info.Mode().Perm())
}
