package reload

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A fixture runs Files over a pair of files in a synctest bubble. The apply function returns an
// error unless both files have the same content.
type fixture struct {
	*testing.T
	dir    string
	hangup chan os.Signal

	mu sync.Mutex
	// Guarded by mu.
	used    string
	changes int
	log     bytes.Buffer
}

// Write writes to the log.
func (f *fixture) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

func (f *fixture) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

func (f *fixture) write(name, text string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

// want waits for the duration d. Then it checks which state is in use, and the number of changes so
// far.
func (f *fixture) want(d time.Duration, used string, changes int) {
	f.Helper()
	time.Sleep(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used != used || f.changes != changes {
		f.Errorf("got %q after %d changes, want %q after %d; the log:\n%s", f.used, f.changes, used, changes, &f.log)
	}
}

func run(t *testing.T, test func(f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, dir: t.TempDir(), hangup: make(chan os.Signal)}
		f.write("a", "1")
		f.write("b", "1")
		files := new(Files)
		err := files.Add(func(contents [][]byte) error {
			if a, b := string(contents[0]), string(contents[1]); a != b {
				return errors.New(a + " does not match " + b)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.used = string(contents[0])
			return nil
		}, File{"--a", filepath.Join(f.dir, "a")}, File{"--b", filepath.Join(f.dir, "b")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			files.Run(ctx, slog.New(slog.NewTextHandler(f, nil)), f.hangup, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.changes++
			})
		}()
		test(f)
		cancel()
		<-ended
	})
}

func TestChangedFilesAreUsedWithin15Seconds(t *testing.T) {
	run(t, func(f *fixture) {
		f.want(time.Minute+time.Millisecond, "1", 0)
		f.write("a", "2")
		f.write("b", "2")
		f.want(9*time.Second, "1", 0)
		f.want(3*time.Second, "2", 1)
		// changed is called again at the next check, for requests that began before the change.
		f.want(time.Hour, "2", 2)
	})
}

func TestHalfWrittenPairKeepsTheOldState(t *testing.T) {
	run(t, func(f *fixture) {
		f.write("a", "2")
		f.want(time.Minute, "1", 0)
		if got := strings.Count(f.logged(), "level=WARN"); got != 1 ||
			!strings.Contains(f.logged(), "2 does not match 1") {
			f.Errorf("got %d warnings, want one that names the reason:\n%s", got, f.logged())
		}
		f.write("b", "2")
		f.want(11*time.Second, "2", 1)
	})
}

func TestUnreadableFileKeepsTheOldState(t *testing.T) {
	run(t, func(f *fixture) {
		f.write("a", "")
		f.want(time.Minute, "1", 0)
		if err := os.Remove(filepath.Join(f.dir, "a")); err != nil {
			f.Fatal(err)
		}
		f.want(time.Minute, "1", 0)
		for _, want := range []string{"a: the file is empty", "no such file"} {
			if strings.Count(f.logged(), want) != 1 {
				f.Errorf("want %q once in the log:\n%s", want, f.logged())
			}
		}
		f.write("a", "1")
		f.want(time.Minute, "1", 2)
	})
}

func TestFileThatIsBeingWrittenIsNotUsed(t *testing.T) {
	run(t, func(f *fixture) {
		time.Sleep(10*time.Second - time.Millisecond)
		for _, text := range []string{"2", "22", "222"} {
			f.write("a", text)
			f.write("b", text)
			f.want(time.Second, "1", 0)
		}
		f.want(time.Second, "222", 1)
	})
}

func TestSwappedSymbolicLinkIsNoticed(t *testing.T) {
	run(t, func(f *fixture) {
		// The links in a secret volume lead through the link ..data, which Kubernetes swaps.
		link := filepath.Join(f.dir, "..data")
		for _, version := range []string{"2", "3"} {
			if err := os.Mkdir(filepath.Join(f.dir, version), 0o700); err != nil {
				f.Fatal(err)
			}
			for _, name := range []string{"a", "b"} {
				f.write(filepath.Join(version, name), version)
				os.Remove(filepath.Join(f.dir, name))
				if err := os.Symlink(filepath.Join("..data", name), filepath.Join(f.dir, name)); err != nil {
					f.Fatal(err)
				}
			}
			if err := os.Symlink(version, link+"_tmp"); err != nil {
				f.Fatal(err)
			}
			if err := os.Rename(link+"_tmp", link); err != nil {
				f.Fatal(err)
			}
			time.Sleep(15 * time.Second)
			synctest.Wait()
			f.mu.Lock()
			if f.used != version {
				f.Errorf("got %q, want %q", f.used, version)
			}
			f.mu.Unlock()
		}
	})
}

func TestSignalReadsFilesAtOnce(t *testing.T) {
	run(t, func(f *fixture) {
		f.write("a", "2")
		f.write("b", "2")
		f.hangup <- os.Interrupt
		f.want(settle, "2", 1)
		if !strings.Contains(f.logged(), "SIGHUP") {
			f.Errorf("the log does not mention the signal:\n%s", f.logged())
		}
	})
}

func TestFirstErrorIsReturned(t *testing.T) {
	refuse := func([][]byte) error { return errors.New("bad") }
	file := filepath.Join(t.TempDir(), "a")
	if err := new(Files).Add(refuse, File{"--a", file}); err == nil || !strings.HasPrefix(err.Error(), "--a: open ") {
		t.Errorf("got %v for a missing file", err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := new(Files).Add(refuse, File{"--a", file}); err == nil || err.Error() != "--a "+file+": bad" {
		t.Errorf("got %v for a bad file", err)
	}
}
