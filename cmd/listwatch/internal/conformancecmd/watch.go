package conformancecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
)

// pollInterval is the interval at which --watch looks for changed files. The files are complete
// when nothing changes for one interval.
const pollInterval = 300 * time.Millisecond

// A repetition is the state of repeated runs.
type repetition struct {
	watch   string   // the directory whose changes start a run, or empty
	reports []string // the absolute paths of the reports, whose changes start no run
	failed  []string // the IDs of the cases that failed in the last run
}

// repeat calls once for a run of all cases. With --watch, it starts another run whenever a file has
// changed, until ctx ends. If cases have failed, the run has only these cases. When all of them
// pass, a run of all cases follows. Each call of once must open the target anew.
func (r *repetition) repeat(
	ctx context.Context, all conformance.Options, out io.Writer, once func(conformance.Options) error,
) error {
	if r.watch == "" {
		return once(all)
	}
	var during []string // the files that changed during the last run
	for next, part := all, false; ; {
		before, after, err := r.observe(out, func() error { return once(next) })
		if err != nil {
			return cli.UsageError(err)
		}
		changed := after.changes(before)
		switch {
		case ctx.Err() != nil:
			return nil
		case len(changed) > 0 && !slices.Equal(changed, during):
			fmt.Fprintf(out, "\nRunning again, because %s changed during the run\n", strings.Join(changed, ", "))
			after = before
		case part && len(r.failed) == 0:
			fmt.Fprint(out, "\nNo case failed; running all cases\n")
			next, part, during = all, false, changed
			continue
		default:
			// If the same files have changed in two runs in a row, the target itself writes them.
			fmt.Fprintf(out, "\nWaiting for a change in %s; %d cases failed\n", r.watch, len(r.failed))
		}
		during = changed
		if err := r.awaitChange(ctx, after); err != nil || ctx.Err() != nil {
			return err
		}
		next, part = all, len(r.failed) > 0
		if part {
			next.Run = r.failed
		}
	}
}

// observe calls once, prints its error, and returns the files before and after the call.
func (r *repetition) observe(out io.Writer, once func() error) (before, after snapshot, err error) {
	if before, err = r.snapshot(); err != nil {
		return nil, nil, err
	}
	err = once()
	if e, ok := errors.AsType[*cli.ExitError](err); err != nil && !(ok && e.Err == nil) {
		// The next change may fix the target.
		fmt.Fprintf(out, "listwatch: %s\n", cli.OneLine(err))
	}
	after, err = r.snapshot()
	return before, after, err
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

// awaitChange waits until the files differ from before, and have not changed for pollInterval. It
// returns early if ctx ends.
func (r *repetition) awaitChange(ctx context.Context, before snapshot) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for last := before; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now, err := r.snapshot()
		if err != nil || maps.Equal(now, last) && !maps.Equal(now, before) {
			return err
		}
		last = now
	}
}

// A snapshot maps the paths of files to the times of their last changes, in Unix nanoseconds.
type snapshot map[string]int64

// snapshot returns the files in r.watch. It ignores reports and what tools write: names that start
// with a dot or end in .log, node_modules and __pycache__.
func (r *repetition) snapshot() (snapshot, error) {
	files := snapshot{}
	err := filepath.WalkDir(r.watch, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if path == r.watch {
				return err
			}
			return nil // removed in the meantime
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != r.watch && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__") {
				return fs.SkipDir
			}
			return nil
		}
		absolute, err := filepath.Abs(path)
		if err != nil || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".log") ||
			slices.Contains(r.reports, absolute) {
			return err
		}
		if info, err := entry.Info(); err == nil {
			files[path] = info.ModTime().UnixNano()
		}
		return nil
	})
	return files, err
}

// changes returns the files that were written, created or removed since before.
func (s snapshot) changes(before snapshot) (paths []string) {
	for path, at := range s {
		if before[path] != at {
			paths = append(paths, path)
		}
	}
	for path := range before {
		if _, ok := s[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
