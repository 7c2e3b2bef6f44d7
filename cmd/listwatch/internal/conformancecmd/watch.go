package conformancecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
)

const (
	// pollInterval is the interval at which --watch looks for changed files.
	pollInterval = 300 * time.Millisecond
	// settleTime is the time without a change after which the files are complete.
	settleTime = pollInterval
)

// A repetition repeats runs.
type repetition struct {
	watch  string   // the directory whose changes start a run, or empty
	failed []string // the IDs of the cases that failed in the last run
}

// repeat calls once. With --watch, it then calls once again whenever a file has changed, until ctx
// ends: with the cases that failed, or with all cases if none did. Each call must open the target
// anew.
func (r *repetition) repeat(
	ctx context.Context, all conformance.Options, out io.Writer, once func(conformance.Options) error,
) error {
	if r.watch == "" {
		return once(all)
	}
	for next := all; ; {
		err := once(next)
		if e, ok := errors.AsType[*cli.ExitError](err); err != nil && !(ok && e.Err == nil) {
			// The next change may mend the target.
			fmt.Fprintf(out, "listwatch: %s\n", cli.OneLine(err))
		}
		if next = all; len(r.failed) > 0 {
			next.Run = r.failed
		}
		// What the run itself has written is no change.
		before, err := modified(r.watch)
		if err != nil {
			return cli.UsageError(err)
		}
		fmt.Fprintf(out, "\nWaiting for a change in %s; %d cases failed\n", r.watch, len(r.failed))
		if err := awaitChange(ctx, r.watch, before); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// failedCases returns the IDs of the cases of r that failed.
func failedCases(r *conformance.Report) (ids []string) {
	for _, o := range r.Outcomes {
		if o.Verdict.IsFailure() && !slices.Contains(ids, o.ID) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// awaitChange waits until a file in dir was modified after the given time, and no file was modified
// for settleTime. It returns early if ctx ends.
func awaitChange(ctx context.Context, dir string, after time.Time) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		newest, err := modified(dir)
		if err != nil || newest.After(after) && time.Since(newest) > settleTime {
			return err
		}
	}
}

// modified returns the time of the newest change of a file or directory in dir. It ignores what
// tools write: names that start with a dot, and node_modules.
func modified(dir string) (newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			return nil // removed in the meantime
		}
		if name := entry.Name(); path != dir && (strings.HasPrefix(name, ".") || name == "node_modules") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest, err
}
