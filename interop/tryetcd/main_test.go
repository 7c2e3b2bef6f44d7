package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// hangTimeout ends a test that hangs.
const hangTimeout = 5 * time.Minute

// childEnv is the environment variable that makes the test binary run the program.
const childEnv = "LISTWATCH_TEST_TRYETCD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

var serveCommand = regexp.MustCompile(`listwatch serve --etcd (http://\S+)\n`)

// startProgram runs the program in a separate process and returns the URLs that it prints.
func startProgram(t *testing.T, args ...string) (cmd *exec.Cmd, endpoint string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the process may have exited
		_ = cmd.Wait()
	})
	var text []byte
	for buffer := make([]byte, 1024); ; {
		n, err := out.Read(buffer)
		text = append(text, buffer[:n]...)
		if m := serveCommand.FindSubmatch(text); m != nil {
			return cmd, string(m[1])
		}
		if err != nil {
			_ = cmd.Wait()
			t.Fatalf("tryetcd exited; it printed %q and %q", text, stderr)
		}
	}
}

// createThing creates a thing and returns the number of things that existed before.
func createThing(t *testing.T, endpoint, name string) (before int) {
	t.Helper()
	db, err := etcd.Open(t.Context(), etcd.Options{Endpoints: strings.Split(endpoint, ","), Timeout: hangTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.List(t.Context(), listwatch.Query{})
	for errors.Is(err, listwatch.NotYet) { // on a busy machine etcd confirms the version too late
		page, err = c.List(t.Context(), listwatch.Query{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
		t.Fatal(err)
	}
	return len(page.Items)
}

func TestDataSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	for i, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd, endpoint := startProgram(t, "--data", dir, "--client", "http://127.0.0.1:0")
		if before := createThing(t, endpoint, string(rune('a'+i))); before != i {
			t.Errorf("start %d: got %d objects, want %d", i, before, i)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("exit after %v: got %v, want exit code 0", signal, err)
		}
	}
}

func TestThreeMembersKeepTheirData(t *testing.T) {
	dir, port := filepath.Join(t.TempDir(), "made"), ports.ReserveRange(t, 6)
	args := []string{"--members", "3", "--data", dir, "--client", fmt.Sprint("http://127.0.0.1:", port)}
	for i := range 2 {
		cmd, endpoint := startProgram(t, args...)
		want := fmt.Sprintf("http://127.0.0.1:%d,http://127.0.0.1:%d,http://127.0.0.1:%d", port, port+2, port+4)
		if endpoint != want {
			t.Errorf("got the URLs %s, want %s", endpoint, want)
		}
		if before := createThing(t, endpoint, string(rune('a'+i))); before != i {
			t.Errorf("start %d: got %d objects, want %d", i, before, i)
		}
		if members := memberCount(t, endpoint); members != 3 {
			t.Errorf("got a cluster of %d members, want 3", members)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("exit: got %v, want exit code 0", err)
		}
	}
}

// memberCount returns the number of started members of the cluster.
func memberCount(t *testing.T, endpoint string) (n int) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(endpoint, ","), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Members {
		if m.Name != "" && len(m.ClientURLs) == 1 {
			n++
		}
	}
	return n
}

func TestTemporaryDataIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, endpoint := startProgram(t, "--client", "http://127.0.0.1:0")
	createThing(t, endpoint, "a")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(files) > 0 {
		t.Errorf("got remaining files %v, error %v; want none", files, err)
	}
}

func TestInvalidFlagsAreReported(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := "http://" + busy.Addr().String()
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"--client " + taken:                          {1, "address already in use"},
		"--client http://127.0.0.1:0 --data " + file: {1, file},
		"--client https://127.0.0.1:2379":            {2, "must have the form http://"},
		"--client http://127.0.0.1":                  {2, ":PORT"},
		"--client http://0.0.0.0:0":                  {2, "loopback"},
		"--client :":                                 {2, "--client :"},
		"--members 2":                                {2, "must be 1, 3, 5 or 7"},
		"--retention 1ms":                            {2, "must be at least a second"},
		"--members 3 --client http://127.0.0.1:0":    {2, "need a fixed port"},
		"--clients x":                                {2, "-clients"},
		"more":                                       {2, `"more"`},
	} {
		var stderr strings.Builder
		code := run(t.Context(), strings.Fields(line), io.Discard, &stderr)
		if code != want.code || !strings.Contains(stderr.String(), want.text) {
			t.Errorf("%s: got exit code %d and %q, want %d and %q", line, code, stderr.String(), want.code, want.text)
		}
	}
}

func TestSignalDuringStartExits(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("signal"))
	var stderr strings.Builder
	if code := run(ctx, []string{"--client", "http://127.0.0.1:0"}, io.Discard, &stderr); code != 0 {
		t.Errorf("got exit code %d and %q, want 0", code, stderr.String())
	}
}
