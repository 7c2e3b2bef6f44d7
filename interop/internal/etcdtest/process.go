package etcdtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/listwatch/listwatch/internal/ports"
)

// memberEnv is the environment variable with the configuration of a member. It makes a
// process of the test binary act as that member.
const memberEnv = "LISTWATCH_TEST_ETCD"

// A member configures one member of an etcd cluster. The member runs as a process.
type member struct {
	Name, Dir       string
	Client, Peer    string // the URLs that it listens on
	AdvertisedPeer  string
	Cluster         string
	MaxRequestBytes uint
	Durable         bool   // writes wait for the disk
	SnapshotEvery   uint64 // the number of writes between snapshots
}

// Main must be called by TestMain. If the process was started as a member of etcd, it runs etcd and
// does not return.
func Main() {
	text := os.Getenv(memberEnv)
	if text == "" {
		return
	}
	var m member
	err := json.Unmarshal([]byte(text), &m)
	if err == nil {
		err = m.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (m *member) run() error {
	c := embed.NewConfig()
	c.Name, c.Dir = m.Name, m.Dir
	// Without fsync, the data survives kill -9, but not a power failure.
	c.UnsafeNoFsync = !m.Durable
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenClientUrls, c.AdvertiseClientUrls = urls(m.Client), urls(m.Client)
	c.ListenPeerUrls, c.AdvertisePeerUrls = urls(m.Peer), urls(m.AdvertisedPeer)
	c.InitialCluster = m.Cluster
	c.TickMs, c.ElectionMs = 50, 500
	if m.MaxRequestBytes > 0 {
		c.MaxRequestBytes = m.MaxRequestBytes
	}
	if m.SnapshotEvery > 0 {
		c.SnapshotCount, c.SnapshotCatchUpEntries = m.SnapshotEvery, m.SnapshotEvery/2
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the process of the test exits
		close(orphaned)
	}()
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-e.Err():
		return err
	case <-orphaned:
		return nil
	}
	select {
	case <-stop:
		e.Close()
	case <-orphaned:
	}
	return nil
}

// A Process is a member of a cluster in a separate process. Its methods must be called by
// the test's goroutine.
type Process struct {
	// URL is the address for clients.
	URL string

	t      testing.TB
	member member
	cmd    *exec.Cmd
	stdin  io.Closer
	ready  chan error
}

// StartProcess starts a single-member etcd in a separate process, which is killed at the end of the
// test.
func StartProcess(t testing.TB) *Process {
	t.Helper()
	return StartCluster(t, 1, nil)[0]
}

// StartDurable is like StartProcess, but writes of this etcd wait for the disk, as in
// production.
func StartDurable(t testing.TB) *Process {
	t.Helper()
	p := newProcess(t, 0)
	p.member.Durable = true
	p.member.Cluster = p.member.Name + "=" + p.member.AdvertisedPeer
	p.start()
	t.Cleanup(p.Kill)
	p.awaitReady()
	return p
}

func newProcess(t testing.TB, i int) *Process {
	t.Helper()
	m := member{
		Name: fmt.Sprint("m", i), Dir: t.TempDir(), Client: "http://" + ports.Address(t),
		Peer: "http://" + ports.Address(t), MaxRequestBytes: 8 << 20,
	}
	m.AdvertisedPeer = m.Peer
	return &Process{URL: m.Client, t: t, member: m}
}

// StartCluster starts an etcd of n members, each in a separate process. If n > 1, members take
// snapshots often. If via is not nil, member i advertises the URL via(i, peer) to the other
// members, instead of peer, the URL at which it listens for them.
func StartCluster(t testing.TB, n int, via func(i int, peer string) string) []*Process {
	t.Helper()
	members := make([]*Process, n)
	var cluster []string
	for i := range members {
		members[i] = newProcess(t, i)
		m := &members[i].member
		if n > 1 {
			m.SnapshotEvery = 100
		}
		if via != nil {
			m.AdvertisedPeer = via(i, m.Peer)
		}
		cluster = append(cluster, m.Name+"="+m.AdvertisedPeer)
	}
	for _, p := range members {
		p.member.Cluster = strings.Join(cluster, ",")
		p.start()
		t.Cleanup(p.Kill)
	}
	for _, p := range members {
		p.awaitReady()
	}
	return members
}

func (p *Process) start() {
	p.t.Helper()
	config, err := json.Marshal(p.member)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(config))
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ready = make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && line != "ready\n" {
			err = fmt.Errorf("etcd printed %q, want \"ready\"", line)
		}
		p.ready <- err
	}()
}

func (p *Process) awaitReady() {
	p.t.Helper()
	select {
	case err := <-p.ready:
		if err != nil {
			p.t.Fatalf("etcd did not start: %v", err)
		}
	case <-time.After(startTimeout):
		p.t.Fatal("etcd is not ready")
	}
}

// Kill kills the process with SIGKILL.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // the process may have exited
	_ = p.cmd.Wait()
	p.stdin.Close()
	p.cmd = nil
}

// Restart starts a killed process again and waits until it is ready.
func (p *Process) Restart() {
	p.t.Helper()
	p.start()
	p.awaitReady()
}

// Pause stops the process with SIGSTOP until Resume is called. It returns when all threads have
// stopped, which takes a moment on a busy machine.
func (p *Process) Pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for timeout := time.After(startTimeout); p.runs(); {
		select {
		case <-tick.C:
		case <-timeout:
			p.t.Fatal("etcd did not pause")
		}
	}
}

// runs reports whether a thread of the process is still running after SIGSTOP.
func (p *Process) runs() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err != nil {
		return false
	}
	for _, file := range threads {
		// The format is "PID (NAME) STATE ...". A thread that has exited has no file.
		if text, err := os.ReadFile(file); err == nil && !strings.Contains(string(text), ") T ") {
			return true
		}
	}
	return false
}

// Resume continues a paused process.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
