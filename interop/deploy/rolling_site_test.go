package deploy

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A site is the setup of docs/operations.md without Prometheus, plus a third server that is not
// restarted.
type site struct {
	t     *testing.T
	setup *setup
	dir   string

	servers        [2]*process
	nginx          *process
	front, frontH2 string // addresses of nginx
	control        string // the address at which nginx forwards to the third server
	token          string
}

// The ports in docs/operations.md, and two more at which nginx listens.
const (
	etcdPort, nginxPort, firstServerPort, firstMetricsPort = 2379, 8080, 8081, 9464
	h2Port, controlPort                                    = 8090, 8091
)

func startSite(t *testing.T) *site {
	s := &site{t: t, setup: readSetup(t), dir: t.TempDir(), token: "0123456789abcdef"}
	s.front, s.frontH2, s.control = s.setup.addr(nginxPort), s.setup.addr(h2Port), s.setup.addr(controlPort)
	s.write("tokens", s.token+",admin,1\n")
	s.write("server.yaml", s.setup.file(t, "server.yaml"))
	s.write("nginx.conf", s.nginxConfig())
	s.startEtcd("one", "two", "three")
	for i := range s.servers {
		s.startServer(i)
	}
	s.start(2)
	s.nginx = startProcess(t, s.dir, "nginx", "nginx", "-p", s.dir, "-c", "nginx.conf", "-e", "stderr", "-g",
		"daemon off;")
	s.nginx.awaitReady("http://" + s.control + "/readyz")
	return s
}

// startEtcd starts a cluster of members with the given names. Each uses two ports, in this order.
func (s *site) startEtcd(names ...string) {
	urls := func(i int) (client, peer string) {
		return "http://" + s.setup.addr(etcdPort+2*i), "http://" + s.setup.addr(etcdPort+2*i+1)
	}
	var cluster []string
	for i, name := range names {
		_, peer := urls(i)
		cluster = append(cluster, name+"="+peer)
	}
	var last *process
	for i, name := range names {
		client, peer := urls(i)
		last = startProcess(s.t, s.dir, "etcd-"+name, program(s.t, "etcd"), "--name", name, "--data-dir", "etcd-"+name,
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","), "--auto-compaction-retention", "5m", "--unsafe-no-fsync")
	}
	client, _ := urls(len(names) - 1)
	last.awaitReady(client + "/health")
}

func (s *site) write(name, text string) {
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// nginxConfig returns the nginx.conf of docs/operations.md with a log of requests and two more
// listeners: one for HTTP/2, and one for the third server.
func (s *site) nginxConfig() string {
	config := s.setup.file(s.t, "nginx.conf")
	_, location, _ := strings.Cut(config, "location / {")
	location, _, _ = strings.Cut(location, "}")
	control := fmt.Sprintf("server { listen %s; access_log off; location / {%s} }\n    server {", s.control,
		strings.Replace(location, "http://listwatch", "http://"+s.setup.addr(firstServerPort+2), 1))
	for old, changed := range map[string]string{
		"access_log off;\n":               "log_format t '$msec $request_time $request_method $status $request_uri'; access_log access.log t;\n",
		"    server {":                    "    " + control,
		"        listen " + s.front + ";": "        listen " + s.front + "; listen " + s.frontH2 + " http2;",
	} {
		if strings.Count(config, old) != 1 {
			s.t.Fatalf("the nginx.conf of %s has %q not once:\n%s", operations, old, config)
		}
		config = strings.Replace(config, old, changed, 1)
	}
	return config
}

func (s *site) start(i int) *process {
	metrics := s.setup.addr(firstMetricsPort + i)
	p := startProcess(s.t, s.dir, fmt.Sprint("server", i), program(s.t, "listwatch"), "serve", "--config",
		"server.yaml",
		"--addr", s.setup.addr(firstServerPort+i), "--metrics-addr", metrics)
	p.awaitReady("http://" + metrics + "/readyz")
	return p
}

func (s *site) startServer(i int) { s.servers[i] = s.start(i) }

// checkRequests checks the requests in the log of nginx that started at the given time or later. It
// fails the test if a client listed again or watched from the current state, if fewer watches were
// resumed than there are watchers, or if nginx found no server for a request.
func (s *site) checkRequests(began time.Time, watchers int) {
	s.t.Helper()
	file, err := os.Open(filepath.Join(s.dir, "access.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	resumed, statuses := 0, make(map[int]int)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var ended, took float64
		var method, uri string
		var status int
		if _, err := fmt.Sscan(lines.Text(), &ended, &took, &method, &status, &uri); err != nil {
			s.t.Fatalf("access.log: %v in %q", err, lines.Text())
		}
		if ended-took < float64(began.UnixMilli())/1000 {
			continue
		}
		statuses[status]++
		if method != http.MethodGet {
			continue
		}
		u, err := url.Parse(uri)
		if err != nil {
			s.t.Fatal(err)
		}
		q := u.Query()
		switch from := q.Get("resourceVersion"); {
		case q.Get("watch") == "" || from == "" || from == "0" || q.Get("sendInitialEvents") == "true":
			s.t.Errorf("a client did not resume, but sent GET %s", uri)
		case status < 300:
			resumed++
		}
	}
	s.t.Logf("responses of nginx during and after the restarts, by status: %v", statuses)
	if resumed < watchers {
		s.t.Errorf("%d watches were resumed, want at least one for each of %d watchers", resumed, watchers)
	}
	if n := statuses[http.StatusBadGateway]; n > 0 {
		s.t.Errorf("nginx found no server for %d requests", n)
	}
}
