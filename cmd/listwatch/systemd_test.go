//go:build linux

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startUnit starts the program as systemd does: with a socket named http, and a socket for
// notifications.
func startUnit(t *testing.T, socket *os.File, notify string, args ...string) *process {
	t.Helper()
	p := &process{stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{})}
	// The shell sets LISTEN_PID to the process ID, which is known only after the start.
	p.cmd = exec.Command("/bin/sh",
		append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "serve"}, args...)...)
	p.cmd.Env = append(os.Environ(), asProgramEnv+"=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=http", "NOTIFY_SOCKET="+notify)
	p.cmd.ExtraFiles = []*os.File{socket} // file descriptor 3
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // exit returns the exit code
	}()
	t.Cleanup(p.kill)
	return p
}

func TestRestartUnderSystemdRefusesNoConnection(t *testing.T) {
	notify, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	want := func(state string) {
		t.Helper()
		b := make([]byte, 100)
		n, err := notify.Read(b)
		if got := string(b[:n]); got != state || err != nil {
			t.Fatalf("systemd was told %q, %v; want %q", got, err, state)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	first := startUnit(t, socket, notify.LocalAddr().String(), "--addr", "systemd:http")
	want("READY=1")
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	want("STOPPING=1")
	if code, stderr := first.exit(); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	between, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("a connection during the restart: %v", err)
	}
	between.Close()
	startUnit(t, socket, notify.LocalAddr().String(), "--addr", "systemd:http")
	want("READY=1")
	if code, _, _ := request(t, "GET", "http://"+l.Addr().String()+"/readyz", ""); code != 200 {
		t.Errorf("got status %d after the restart", code)
	}
}

func TestUnknownSystemdSocketIsAnError(t *testing.T) {
	p := start(t, "serve", "--addr", "systemd:http")
	if code := p.exit(t); code != 2 || !strings.Contains(p.stderr.String(), "FileDescriptorName=http") {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
}
