package etcdcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance/fault"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

// A server is a process that can be killed and started again at the same address. It reaches each member of etcd through a proxy of its own. Its
// methods are for the goroutine of the test.
type server struct {
	// Immutable after construction.
	t       testing.TB
	name    string
	config  serverConfig
	base    string         // of its URLs, without a proxy
	front   string         // host and port that clients connect to
	proxies []*fault.Proxy // before the members
	door    *fault.Proxy   // before the server

	away  atomic.Bool // cut off from etcd
	cmd   *exec.Cmd
	stdin io.Closer

	mu sync.Mutex
	// Guarded by mu.
	told map[string]int // how often the processes told of what
	why  []string       // what they said of it
}

// startServer starts one whose connections, those from clients and those to members, meet faults of a mix each.
func startServer(t testing.TB, name string, members []*etcdtest.Process, clients, etcd fault.RandomOptions, seed uint64) *server {
	t.Helper()
	s := &server{t: t, name: name, told: make(map[string]int)}
	l := listen(t)
	s.config.Addr = l.Addr().String()
	l.Close()
	s.base = "http://" + s.config.Addr
	s.door = s.proxy(s.config.Addr, "client", fault.Random(seed, clients))
	s.front = s.door.Listener.Addr().String()
	for i, m := range members {
		random := fault.Random(seed+1+uint64(i), etcd)
		p := s.proxy(strings.TrimPrefix(m.URL, "http://"), "etcd", func(conn int) fault.Fault {
			if s.away.Load() {
				return fault.Fault{Kind: fault.Stall}
			}
			return random(conn)
		})
		s.proxies = append(s.proxies, p)
		s.config.Endpoints = append(s.config.Endpoints, "http://"+p.Listener.Addr().String())
	}
	t.Cleanup(s.kill)
	s.start()
	return s
}

// proxy starts a proxy before addr, which ends with the test.
func (s *server) proxy(addr, what string, plan fault.Plan) *fault.Proxy {
	p := &fault.Proxy{
		Listener: listen(s.t), Plan: plan,
		Dial:   func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) },
		Faults: func(b fault.Injection) { s.note(what+" connection "+b.Kind.String(), "") },
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	s.t.Cleanup(func() {
		_ = p.Close() // its listener is closed
		if err := <-served; err != nil {
			s.t.Error(err)
		}
	})
	return p
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startTime is how long a process may take to serve before another is started in its place.
const startTime = 30 * time.Second

// start starts a process, again and again until one serves: while etcd can't be read none does.
func (s *server) start() {
	s.t.Helper()
	var err error
	for late := time.Now().Add(patience); time.Now().Before(late); {
		if err = s.try(); err == nil {
			return
		}
		s.kill()
		s.note("start failed", err.Error())
	}
	s.t.Fatalf("server %s does not start: %v", s.name, err)
}

func (s *server) try() error {
	config, err := json.Marshal(s.config)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), serverEnv+"="+string(config))
	s.cmd.Stderr = os.Stderr
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	go s.listen(out, ready) // ends with the process
	select {
	case err := <-ready:
		return err
	case <-time.After(startTime):
		return errors.New("it is not ready after " + startTime.String())
	}
}

// listen notes what a process tells.
func (s *server) listen(out io.Reader, ready chan<- error) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "ready":
			ready <- nil
		case "failed":
			ready <- errors.New(rest)
		default:
			s.note(word, rest)
		}
	}
	select {
	case ready <- errors.New("it ended without a word"):
	default:
	}
}

func (s *server) note(word, rest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[word]++
	if word != "resumed" && rest != "" {
		s.why = append(s.why, word+": "+rest)
	}
}

// count returns how often something was told of.
func (s *server) count(word string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[word]
}

// kill ends the process at once, by SIGKILL.
func (s *server) kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may be gone
	_ = s.cmd.Wait()
	s.stdin.Close()
	s.cmd = nil
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// cutOff holds back everything between the server and etcd, until restore.
func (s *server) cutOff() {
	s.away.Store(true)
	s.strike(fault.Stall)
}

// restore lets etcd be reached again: what was under way arrives late, or its connections are reset.
func (s *server) restore(late bool) {
	s.away.Store(false)
	if late {
		s.strike(fault.None)
	} else {
		s.strike(fault.Reset)
	}
}

// heal lets no fault begin any more.
func (s *server) heal() {
	for _, p := range append(s.proxies, s.door) {
		p.Heal()
	}
}

func (s *server) strike(k fault.Kind) {
	for _, p := range s.proxies {
		p.InjectAll(fault.Fault{Kind: k})
	}
}

// The path of the things in all namespaces, and the URL of those in one, as clients reach it.
const path = "/apis/example.com/v1/things"

func (s *server) of(namespace string) string {
	return "http://" + s.front + "/apis/example.com/v1/namespaces/" + namespace + "/things"
}

// readyz returns what /readyz says.
func (s *server) readyz(ctx context.Context) (code int, text string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/readyz", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}
