package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// smallDiskEnv is the environment variable that names a directory. Before the program
// starts, the process mounts a file system of 1 MiB at this directory, in its own mount
// namespace.
const smallDiskEnv = "LISTWATCH_TEST_SMALL_DISK"

// exitNoDisk is the exit code of a process that is not allowed to mount a file system.
const exitNoDisk = 99

func init() {
	dir := os.Getenv(smallDiskEnv)
	if dir == "" {
		return
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitNoDisk)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitNoDisk)
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 512<<10), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitNoDisk)
	}
}

func TestFullDiskFailsWritesTemporarily(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(smallDiskEnv, dir)
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	p := startProcess(t, attributes, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "test.db"))
	select {
	case <-p.ended:
		if code, stderr := p.exit(); code == exitNoDisk {
			t.Skip("this system does not allow the test to mount a file system: " + stderr)
		}
	case <-p.firstOutput():
	}
	base := p.awaitURL(t)
	big := strings.Repeat("x", 20_000)
	put := func(i int) (int, string) {
		code, _, body := request(t, http.MethodPost, base+podsPath,
			fmt.Sprintf(`{"metadata":{"name":"p%d"},"data":%q}`, i, big))
		return code, body
	}
	// All writes fail in the same way, and the server keeps running. After the first one, another
	// may succeed in pages that were in use before.
	n := 0
	for failed := 0; failed < 4; {
		switch code, body := put(n); {
		case code == http.StatusCreated && n < 1000:
			n, failed = n+1, 0
		case code == http.StatusServiceUnavailable && strings.Contains(body, "there is no space left for") &&
			strings.Contains(body, `"kind":"Status"`):
			failed++
		default:
			t.Fatalf("write %d: got %d %.300s, want 503 with \"no space\"", n, code, body)
		}
	}
	if n < 2 {
		t.Fatalf("%d writes succeeded on a disk of 1 MiB", n)
	}
	for i := range n {
		if code, _, body := request(t, http.MethodGet, fmt.Sprintf("%s%s/p%d", base, podsPath, i),
			""); code != http.StatusOK || !strings.Contains(body, big) {
			t.Errorf("GET p%d, which was written before the disk was full: got %d", i, code)
		}
	}
	// Only the process sees the mount, so the test reaches the file through /proc.
	if err := os.Remove(fmt.Sprintf("/proc/%d/root%s/ballast", p.cmd.Process.Pid, dir)); err != nil {
		t.Fatal(err)
	}
	if code, body := put(n); code != http.StatusCreated {
		t.Errorf("a write after space was freed: got %d %s", code, body)
	}
	t.Logf("the disk was full after %d writes", n)
}

func TestReadOnlyDataIsReported(t *testing.T) {
	dir, err := os.MkdirTemp("", "listwatch-test-") // other users cannot enter a t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "test.db")
	s := startServer(t, "--data", file)
	s.interrupt()
	s.exit(t)
	attributes, binary := (*syscall.SysProcAttr)(nil), os.Args[0]
	if os.Geteuid() == 0 { // root may write read-only files, so run the program as another user
		const nobody = 65534
		attributes, binary = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
			filepath.Join(dir, "program")
		data, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(binary, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o444, 0} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		p := startBinary(t, binary, attributes, "serve", "--addr", "127.0.0.1:0", "--data", file)
		if code, stderr := p.exit(); code != cli.ExitUnservable || !strings.Contains(stderr, "must be writable") ||
			!strings.Contains(stderr, file) {
			t.Errorf("mode %v: exit code %d, stderr %q", mode, code, stderr)
		}
	}
}
