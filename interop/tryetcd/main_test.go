package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

// childEnv says that a process is the program.
const childEnv = "LISTWATCH_TEST_TRYETCD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

var served = regexp.MustCompile(`listwatch serve --etcd (http://\S+)`)

// start starts the program in a process of its own and returns the URL that it tells to serve from.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, endpoint string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	said := new(bytes.Buffer)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most tests have ended it
		_ = cmd.Wait()
	})
	var text []byte
	for buffer := make([]byte, 1024); ; {
		n, err := out.Read(buffer)
		text = append(text, buffer[:n]...)
		if m := served.FindSubmatch(text); m != nil {
			return cmd, string(m[1])
		}
		if err != nil {
			_ = cmd.Wait()
			t.Fatalf("it said %q and %q", text, said)
		}
	}
}

// write creates a thing, after it has looked how many there are.
func write(t *testing.T, endpoint, name string) (before int) {
	t.Helper()
	db, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
		t.Fatal(err)
	}
	return len(page.Items)
}

func TestWhatIsWrittenIsThereAfterASignalAndAnotherStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	for i, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd, endpoint := start(t, "--data", dir, "--client", "http://127.0.0.1:0")
		if before := write(t, endpoint, string(rune('a'+i))); before != i {
			t.Errorf("start %d finds %d objects", i, before)
		}
		var said strings.Builder
		if code := run(t.Context(), []string{"--data", dir, "--client", "http://127.0.0.1:0"}, io.Discard, &said); code != 1 || !strings.Contains(said.String(), dir+" is in use") {
			t.Errorf("a second one on the same data: exit code %d and %q, want 1 and what is in use", code, said.String())
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v, want exit code 0", signal, err)
		}
	}
}

func TestNothingStaysWithoutADirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, endpoint := start(t, "--client", "http://127.0.0.1:0")
	write(t, endpoint, "a")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestWhatCanNotBeIsSaid(t *testing.T) {
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
		"--client " + taken:                          {1, taken + " is in use"},
		"--client http://127.0.0.1:0 --data " + file: {1, file},
		"--client https://127.0.0.1:2379":            {2, "want http"},
		"--client http://127.0.0.1":                  {2, "a port"},
		"--client http://0.0.0.0:0":                  {2, "loopback"},
		"--client :":                                 {2, "--client :"},
		"--clients x":                                {2, "-clients"},
		"more":                                       {2, `"more"`},
	} {
		var said strings.Builder
		code := run(t.Context(), strings.Fields(line), io.Discard, &said)
		if code != want.code || !strings.Contains(said.String(), want.text) {
			t.Errorf("%s: exit code %d and %q, want %d and %q", line, code, said.String(), want.code, want.text)
		}
	}
}

func TestASignalDuringTheStartEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("signal"))
	var said strings.Builder
	if code := run(ctx, []string{"--client", "http://127.0.0.1:0"}, io.Discard, &said); code != 0 {
		t.Errorf("exit code %d and %q, want 0", code, said.String())
	}
}
