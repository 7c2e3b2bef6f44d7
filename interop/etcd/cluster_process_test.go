package etcd

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
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

// A serverProcess is a server process that can be killed and restarted at the same address.
// It has a proxy for each member of etcd, and one for its clients. Its methods must be
// called by the test's goroutine.
type serverProcess struct {
	// Immutable after construction.
	t           testing.TB
	name        string
	config      serverConfig
	directURL   string         // bypasses the proxy
	clientAddr  string         // the host and port of the proxy for clients
	etcdProxies []*fault.Proxy // one for each member
	clientProxy *fault.Proxy

	etcdCut atomic.Bool // whether the server is disconnected from etcd
	cmd     *exec.Cmd
	stdin   io.Closer

	mu sync.Mutex
	// Guarded by mu. counts has the number of calls of note for each word. details has a line
	// "word: text" for each call with a text, except for the word "resumed".
	counts  map[string]int
	details []string
}

// startServer starts a server. Random faults affect the connections of its clients and its
// connections to etcd.
func startServer(t testing.TB, name string, members []*etcdtest.Process, clients, etcd fault.RandomOptions,
	seed uint64,
) *serverProcess {
	t.Helper()
	s := &serverProcess{t: t, name: name, counts: make(map[string]int)}
	s.config.Addr = ports.Address(t)
	s.directURL = "http://" + s.config.Addr
	s.clientProxy = s.startProxy(s.config.Addr, "client", fault.Random(seed, clients))
	s.clientAddr = s.clientProxy.Listener.Addr().String()
	for i, m := range members {
		random := fault.Random(seed+1+uint64(i), etcd)
		p := s.startProxy(strings.TrimPrefix(m.URL, "http://"), "etcd", func(conn int) fault.Fault {
			if s.etcdCut.Load() {
				return fault.Fault{Kind: fault.Stall}
			}
			return random(conn)
		})
		s.etcdProxies = append(s.etcdProxies, p)
		s.config.Endpoints = append(s.config.Endpoints, "http://"+p.Listener.Addr().String())
	}
	t.Cleanup(s.kill)
	s.start()
	return s
}

// startProxy runs a proxy to addr until the test ends.
func (s *serverProcess) startProxy(addr, what string, plan fault.Plan) *fault.Proxy {
	p := &fault.Proxy{
		Listener: listen(s.t), Plan: plan,
		Dial:     func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) },
		OnInject: func(b fault.Injection) { s.note(what+" connection "+b.Kind.String(), "") },
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	s.t.Cleanup(func() {
		_ = p.Close() // Serve returns any error
		if err := <-served; err != nil {
			s.t.Error(err)
		}
	})
	return p
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	return testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
}

// serverStartTimeout limits the time until a process is ready. Only failing tests wait that long.
const serverStartTimeout = 2 * time.Minute

// start starts a process. It retries until the process is ready, because a server that cannot read
// from etcd exits.
func (s *serverProcess) start() {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); {
		if err = s.tryStart(); err == nil {
			return
		}
		s.kill()
		s.note("start failed", err.Error())
	}
	s.t.Fatalf("server %s did not start: %v", s.name, err)
}

// tryStart starts a process and waits until it is ready.
func (s *serverProcess) tryStart() error {
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
	go s.readOutput(out, ready) // returns when the process exits
	select {
	case err := <-ready:
		return err
	case <-time.After(serverStartTimeout):
		return errors.New("not ready after " + serverStartTimeout.String())
	}
}

// readOutput reads the lines that a process prints. It sends nil or an error to ready, and
// records all other lines as notes.
func (s *serverProcess) readOutput(out io.Reader, ready chan<- error) {
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
	case ready <- errors.New("exited before it was ready"):
	default:
	}
}

// note records an event of the server. word is the kind of the event, and rest is its text.
func (s *serverProcess) note(word, rest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[word]++
	if word != "resumed" && rest != "" {
		s.details = append(s.details, word+": "+rest)
	}
}

// count returns the number of times that note was called with the given word.
func (s *serverProcess) count(word string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[word]
}

// kill kills the process with SIGKILL.
func (s *serverProcess) kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill() // the process may have exited
	_ = s.cmd.Wait()
	s.stdin.Close()
	s.cmd = nil
}

func (s *serverProcess) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// cutOff stalls all connections between the server and etcd until restore is called.
func (s *serverProcess) cutOff() {
	s.etcdCut.Store(true)
	s.inject(fault.Stall)
}

// restore reconnects the server to etcd. If late is true, its connections continue and
// deliver the stalled data. Otherwise its connections are reset.
func (s *serverProcess) restore(late bool) {
	s.etcdCut.Store(false)
	if late {
		s.inject(fault.None)
	} else {
		s.inject(fault.Reset)
	}
}

// heal ends all faults of the server's connections.
func (s *serverProcess) heal() {
	for _, p := range append(s.etcdProxies, s.clientProxy) {
		p.Heal()
	}
}

func (s *serverProcess) inject(k fault.Kind) {
	for _, p := range s.etcdProxies {
		p.InjectAll(fault.Fault{Kind: k})
	}
}

// collectionPath is the path of the resource "things" in all namespaces.
const collectionPath = "/apis/example.com/v1/things"

// collectionURL returns the URL of the resource "things" in a namespace, through the proxy for
// clients.
func (s *serverProcess) collectionURL(namespace string) string {
	return "http://" + s.clientAddr + "/apis/example.com/v1/namespaces/" + namespace + "/things"
}

// readyz returns the status code and the text of /readyz. The code is 0 if there was no response.
func (s *serverProcess) readyz(ctx context.Context) (code int, text string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.directURL+"/readyz", nil)
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
