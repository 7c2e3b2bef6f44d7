//go:build unix

package javascript

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// presencePage watches who is there, and is there itself. It posts a line for each event.
const presencePage = `<!doctype html><script type="module">
  import { presence, watch } from "/js/listwatch.js";
  import { follow } from "/test/watchers.js";
  const report = (body) => fetch("/report", { method: "POST", body });
  follow(watch, "", ["fetch", "websocket", "eventsource"], report);
  presence("/agents", { metadata: { name: "page" } }, { every: 500, onState: ({ state }) => report("page " + state) });
</script>`

const agentTTL = 3 * time.Second

// A presenceServer serves objects that expire, at /agents, and a relay of them at /relay.
type presenceServer struct {
	*testing.T
	agents *store.Collection
	url    string
	lines  chan string // what the page posts
}

func newPresenceServer(t *testing.T) *presenceServer {
	t.Helper()
	agents := testkit.Must(memory.Open(memory.Options{}).Collection(
		store.CollectionSpec{Kind: "Agent", TTL: func([]byte) time.Duration { return agentTTL }}))(t)
	s := &presenceServer{T: t, agents: agents, lines: make(chan string, 1000)}
	r := relay.Open(agents, relay.Options{})
	h := &crudserver.Handler{Path: "/agents", Collection: agents}
	mux := http.NewServeMux()
	mux.Handle("/agents", h)
	mux.Handle("/agents/", h)
	mux.Handle("/relay", &watchserver.Server{Source: r})
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.Handle("GET /test/", http.StripPrefix("/test", http.FileServer(http.Dir(clientDir+"/test/presence"))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, presencePage)
	})
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // a truncated text does not match what the test expects
		s.lines <- string(text)
	})
	server := httptest.NewServer(mux)
	s.url = server.URL
	t.Cleanup(func() {
		r.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// startNode runs a program of test/presence in Node.js until the end of the test. It returns the
// lines that the program prints.
func (s *presenceServer) startNode(program string, args ...string) (*exec.Cmd, <-chan string) {
	s.Helper()
	cmd := exec.Command(nodePath(s.T), append([]string{clientDir + "/test/presence/" + program, s.url}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range lines { // until its end
		}
		_ = cmd.Wait() // reports that it was killed
	})
	return cmd, lines
}

// await reads lines until each of want has arrived.
func (s *presenceServer) await(lines <-chan string, want ...string) {
	s.Helper()
	missing := map[string]bool{}
	for _, line := range want {
		missing[line] = true
	}
	late := time.After(time.Minute)
	for len(missing) > 0 {
		select {
		case line, ok := <-lines:
			if !ok {
				s.Fatalf("the program has ended; %v is missing", missing)
			}
			delete(missing, line)
		case <-late:
			s.Fatalf("%v is missing", missing)
		}
	}
}

// testKilledAgent kills an agent, and checks the time until the watchers over the transports know
// it.
func (s *presenceServer) testKilledAgent(lines <-chan string, transports ...string) {
	s.Helper()
	each := func(event string) (all []string) {
		for _, path := range []string{"/agents", "/relay"} {
			for _, transport := range transports {
				all = append(all, strings.Join([]string{path, transport, event}, " "))
			}
		}
		return all
	}
	s.await(lines, each("SYNCED")...)
	agent, states := s.startNode("agent.js", "agent")
	s.await(states, "present")
	s.await(lines, each("ADDED agent")...)
	if err := agent.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	killed := time.Now()
	s.await(lines, each("DELETED agent")...)
	if took := time.Since(killed); took > agentTTL+2*time.Second {
		s.Errorf("the watchers knew it after %v, want at most %v", took, agentTTL+2*time.Second)
	}
}

func TestNodeSeesKilledAgent(t *testing.T) {
	t.Parallel() // slow, because the TTL has to pass
	s := newPresenceServer(t)
	_, lines := s.startNode("node.js")
	s.testKilledAgent(lines, "fetch")
}

// testPresencePage tests a page that watches agents and is present like one.
func (s *presenceServer) testPresencePage(ctx context.Context) {
	s.testKilledAgent(s.lines, "fetch", "websocket", "eventsource")
	if _, err := s.agents.Get(ctx, listwatch.Key{Name: "page"}); err != nil {
		s.Errorf("the presence of the page: %v", err)
	}
}
