//go:build unix

// Package pgtest runs PostgreSQL for tests.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// timeout limits the time until PostgreSQL is ready, and until it has stopped.
const timeout = 5 * time.Minute

// A Server is a PostgreSQL that listens at a Unix socket in a directory of its own.
type Server struct {
	t        testing.TB
	binaries string // the directory with initdb and postgres
	dir      string
	cmd      *exec.Cmd // nil while the server is stopped
	settings []string  // as passed to Configure
	output   bytes.Buffer
	schemas  atomic.Int32
}

// Start starts a PostgreSQL that is stopped at the end of the test. Without PostgreSQL it skips the
// test, or fails it if CI is true.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, binaries: findBinaries(t)}
	var err error
	// The path of t.TempDir may be too long for a Unix socket.
	if s.dir, err = os.MkdirTemp("", "listwatch-pg-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	if id := unprivileged(t); id != nil {
		if err := os.Chown(s.dir, int(id.Uid), int(id.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	initdb := s.command("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8",
		"--locale=C", "--pgdata="+s.Data())
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.Restart()
	return s
}

// findBinaries returns the directory of PostgreSQL's programs. LISTWATCH_POSTGRES names it for
// another version than that of the system; see tools/postgres.
func findBinaries(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("LISTWATCH_POSTGRES"); path != "" {
		return path
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	// Debian does not put initdb on the path.
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	const missing = "found no initdb on the path or in /usr/lib/postgresql: install PostgreSQL (postgresql in Debian)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing + "; with CI=true it is required")
	}
	t.Skip(missing)
	return ""
}

// unprivileged returns the user that PostgreSQL runs as, or nil for the current user. PostgreSQL
// refuses to run as root.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("found neither user postgres nor nobody: PostgreSQL refuses to run as root")
	return nil
}

// Data returns the data directory.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.binaries, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(s.t)}
	return cmd
}

// Configure restarts the server with other settings, each of the form NAME=VALUE.
func (s *Server) Configure(settings ...string) {
	s.t.Helper()
	s.Stop()
	s.settings = settings
	s.Restart()
}

// Restart starts the server again after Stop, Kill, or the end of its process, with the same data.
func (s *Server) Restart() {
	s.t.Helper()
	// Disable fsync, which protects only against a crash of the machine.
	s.cmd = s.command("postgres", "-D", s.Data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c",
		"max_connections=300", "-c", "max_prepared_transactions=10", "-c", "wal_level=logical",
		"-c", "max_replication_slots=50", "-c", "max_wal_senders=50")
	for _, setting := range s.settings {
		s.cmd.Args = append(s.cmd.Args, "-c", setting)
	}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			_ = conn.Close(ctx) // the connection was only a test
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.Stop()
			s.t.Fatalf("PostgreSQL is not ready: %v\n%s", err, s.output.Bytes())
		}
	}
}

// Stop ends all sessions and stops the server.
func (s *Server) Stop() { s.end(syscall.SIGINT) }

// Kill ends the processes of the server at once, so that the server has to recover when it is
// restarted.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

// Promote kills the server, restarts it as a standby with the same data, and makes it the primary,
// as when a replica takes over.
func (s *Server) Promote(ctx context.Context) error {
	s.t.Helper()
	s.Kill()
	if err := os.WriteFile(filepath.Join(s.Data(), "standby.signal"), nil, 0o666); err != nil {
		return err
	}
	s.Restart()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // only the result of the query matters
	_, err = conn.Exec(ctx, "SELECT pg_promote()")
	return err
}

func (s *Server) end(signal syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal) // if the process has ended, Wait returns
	kill := time.AfterFunc(timeout, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	_ = s.cmd.Wait() // after Kill its exit status is not zero
	s.cmd = nil
}

// URL returns the URL of database postgres, for the superuser.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres:///postgres?user=postgres&host=%s", url.QueryEscape(s.dir))
}

// CreateSchema creates an empty schema and returns a connection URL with this schema as its
// search_path.
func (s *Server) CreateSchema(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }() // the schema exists anyway
	name := fmt.Sprintf("test%d", s.schemas.Add(1))
	_, err = conn.Exec(ctx, "CREATE SCHEMA "+name)
	return s.URL() + "&search_path=" + name, err
}
