package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/ports"
)

// runConformance runs a conformance command to its end, and returns its output and exit
// code.
func runConformance(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := start(t, append([]string{"conformance"}, args...)...)
	code = p.exit(t)
	return p.stdout.String(), p.stderr.String(), code
}

func TestConformanceServer(t *testing.T) {
	s := startServer(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	out, stderr, code := runConformance(t, "server", "--kube", s.http, "--run", "select", "--run", "handshake",
		"--skip", "*/*/ws-[gn][oh]*", "--timeout", "2m",
		"--json", at("r.json"), "--junit", at("r.xml"), "--html", at("r.html"))
	if code != cli.ExitOK || !strings.Contains(out, "pass  select/label-ops") ||
		!strings.Contains(out, "ok: all rules that could be tested hold") {
		t.Fatalf("server: exit code %d, output %s\n%s", code, out, stderr)
	}
	for _, name := range []string{"r.json", "r.xml", "r.html"} {
		if data, err := os.ReadFile(at(name)); err != nil || !strings.Contains(string(data), "select") {
			t.Errorf("%s: got %.100s, %v; want a report", name, data, err)
		}
	}
	out, _, code = runConformance(t, "server", "--url", s.http+"/api/v1/pods", "--run", "handshake/accept-406/h1",
		"--timeout", "2m")
	if code != cli.ExitOK || !strings.Contains(out, "1 run of 1 case") {
		t.Errorf("server --url: exit code %d, output %s", code, out)
	}
}

// A server that is known only by its URL can be tested with a lost history: a request drops the
// history, or a command restarts the server.
func TestConformanceDropsTheHistoryOfAURL(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil || testing.Short() {
		t.Skip("slow; make test runs it on Linux")
	}
	addr, debug, dir := ports.Address(t), ports.Address(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	// The restarted process is not a child of this one, so the script watches its status.
	serve := []string{"serve", "--addr", addr, "--debug-addr", debug, "--data", at("data")}
	script := fmt.Sprintf(`set -eu
pid=$(cat %[1]s)
kill -KILL "$pid"
while grep -qs '^State:.[^Z]' "/proc/$pid/status"; do :; done
[ "$1" = restart ] || exit 0
%[2]s=1 %[3]s %[4]s >/dev/null 2>&1 &
echo $! >%[1]s
`, at("pid"), asProgramEnv, os.Args[0], strings.Join(serve, " "))
	p := startProcess(t, nil, serve...)
	p.awaitURL(t)
	for name, text := range map[string]string{"server": script, "pid": strconv.Itoa(p.cmd.Process.Pid)} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if out, err := exec.Command("sh", at("server"), "stop").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	out, stderr, code := runConformance(t, "server", "--kube", "http://"+addr, "--run", "resume", "--timeout", "2m",
		"--compact", "http://"+debug+"/debug/compact", "--restart", "sh "+at("server")+" restart")
	if code != cli.ExitOK {
		t.Fatalf("exit code %d, output %s\n%s", code, out, stderr)
	}
	for _, rule := range []string{"resume/compact-while-watching", "resume/server-restart"} {
		if !strings.Contains(out, "\npass  "+rule+" ") {
			t.Errorf("%s did not pass:\n%s", rule, out)
		}
	}
}

func TestPassingKnownFailureFailsTheRun(t *testing.T) {
	s := startServer(t)
	known := writeFile(t, "handshake/accept-406 # on purpose\n")
	out, _, code := runConformance(t, "server", "--url", s.http+"/api/v1/pods", "--run", "handshake/accept-406",
		"--known-failures", known, "--token", "s3cr3t", "--timeout", "2m")
	if code != cli.ExitFailure || !strings.Contains(out, "XPASS") ||
		!strings.Contains(out, "--token $TOKEN --run handshake/accept-406/h1") || strings.Contains(out, "s3cr3t") {
		t.Errorf("exit code %d, output %s; want a failure with XPASS and without the token", code, out)
	}
}

func TestInterruptedRunIsReported(t *testing.T) {
	s := startServer(t)
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "conformance", "server", "--kube", s.http, "--json", file)
	p.stdout.await(t, "a case", p.ended, func(text string) bool { return strings.Contains(text, "pass") })
	p.interrupt()
	if code := p.exit(t); code != cli.ExitFailure {
		t.Errorf("exit code %d, output %s", code, p.stdout)
	}
	r, err := openReport(file)
	if err != nil || r.OK() || !strings.Contains(p.stdout.String(), "NOT FINISHED") {
		t.Errorf("got %v, %v; want the report of an unfinished run:\n%s", r, err, p.stdout)
	}
}

func TestConformanceUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"server"}, cli.ExitUsage, "set exactly one of --url"},
		{[]string{"server", "--url", "http://x/", "--kube", "http://x/"}, cli.ExitUsage, "set exactly one of --url"},
		{[]string{"server", "--url", "http://x/", "--resource", "pods"}, cli.ExitUsage, "--resource requires"},
		{[]string{"server", "--url", "nothing"}, cli.ExitUsage, "must be an http or https URL"},
		{[]string{"server", "--url", "http://127.0.0.1:1/", "--run", "no/such"}, cli.ExitUsage, "matches no case"},
		{
			[]string{"server", "--url", "http://127.0.0.1:1/", "--known-failures", "/nowhere"},
			cli.ExitUsage,
			"--known-failures",
		},
		{[]string{"server", "--url", "http://127.0.0.1:1/", "--timeout", "0s"}, cli.ExitUsage, "--timeout"},
		{[]string{"server", "--url", "http://127.0.0.1:1/", "--header", "x"}, cli.ExitUsage, "--header"},
		{[]string{"server", "--exec", "true", "--token", "x"}, cli.ExitUsage, "remove the flags for credentials"},
		{[]string{"server", "--url", "http://127.0.0.1:1/"}, cli.ExitUntestable, "is it running?"},
		{[]string{"server", "--exec", "exit 1"}, cli.ExitUntestable, "it exited before"},
		{[]string{"client"}, cli.ExitUsage, "--exec"},
		{[]string{"client", "--exec", "exit 1"}, cli.ExitUntestable, "it exited before"},
		{[]string{"self", "--faults", "-1s"}, cli.ExitUsage, "--faults"},
		{[]string{"self", "--timeout", "1s"}, cli.ExitUsage, "at least 2s"},
		{[]string{"explain", "from-rv"}, cli.ExitUsage, "resume/from-rv"},
		{[]string{"explain", "nothing"}, cli.ExitUsage, "unknown case"},
		{[]string{"check", "/nowhere"}, cli.ExitUntestable, "nowhere"},
	} {
		if out, stderr, code := runConformance(t, test.args...); code != test.code ||
			!strings.Contains(stderr, test.want) {
			t.Errorf("%q: exit code %d, output %s%s; want %d and %q", test.args, code, out, stderr, test.code,
				test.want)
		}
	}
}

func TestConformanceListAndExplain(t *testing.T) {
	for _, test := range []struct {
		args           []string
		want, unwanted string
	}{
		{[]string{"list"}, "resume/from-rv", ""},
		{[]string{"list", "resume/rv-*"}, "resume/rv-zero", "resume/from-rv"},
		{[]string{"explain", "order/mixed"}, "go test ./conformance/robustness -run '^TestWatchers", ""},
		{[]string{"explain", "resume/from-rv"}, "replays exactly", ""},
		{[]string{"explain", "resume/from-rv"}, "--run resume/from-rv", ""},
	} {
		out, stderr, code := runConformance(t, test.args...)
		if code != cli.ExitOK {
			t.Errorf("%q: exit code %d, %s", test.args, code, stderr)
		}
		if !strings.Contains(out, test.want) {
			t.Errorf("%q: %q is missing from:\n%s", test.args, test.want, out)
		}
		if test.unwanted != "" && strings.Contains(out, test.unwanted) {
			t.Errorf("%q: want no %q in:\n%s", test.args, test.unwanted, out)
		}
	}
}

func TestConformanceListAsJSON(t *testing.T) {
	out, stderr, code := runConformance(t, "list", "--json")
	if code != cli.ExitOK {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	var all []struct{ ID, Strength, Rule string }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	if got, want := len(all), len(conformance.List()); got != want {
		t.Errorf("got %d cases, want %d", got, want)
	}
	for _, c := range all {
		if c.ID == "" || c.Strength == "" || c.Rule == "" {
			t.Errorf("got %+v, want an ID, a strength and a rule", c)
		}
	}
}

func TestConformanceCheck(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "empty"+checker.FileExtension))
	if err != nil {
		t.Fatal(err)
	}
	w, err := checker.NewHistoryWriter(f, checker.Meta{Name: "nothing happened"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if out, _, code := runConformance(t, "check", dir); code != cli.ExitOK || !strings.Contains(out, "0 violations") {
		t.Errorf("check of an empty history: exit code %d, output %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "broken"+checker.FileExtension), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, code := runConformance(t, "check", dir); code != cli.ExitFailure || !strings.Contains(out, "1 failed") {
		t.Errorf("check of a broken history: exit code %d, output %s; want 1 failed", code, out)
	}
}

func openReport(name string) (*conformance.Report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(conformance.Report)
	return r, json.Unmarshal(data, r)
}
