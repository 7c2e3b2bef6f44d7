package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/clients"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/usage"
)

// A server is a rival's server process.
type server interface {
	// publish publishes n changes. interval is the time between two changes; zero means no delay.
	publish(n int, interval time.Duration) error
	usage() (usage.Usage, error)
	target() clients.Target
	stop()
}

// ServeParameters are the parameters of the role "serve" of this program.
type ServeParameters struct {
	Server  string
	Objects int
}

// An ownServer is a server process that runs this program in the role "serve".
type ownServer struct {
	*process
	address clients.Target
}

func startOwn(r Rival, objects int) (server, error) {
	p, err := startSelf("serve", ServeParameters{r.server, objects})
	if err != nil {
		return nil, err
	}
	line, err := p.answer(answerTimeout)
	addr, ok := strings.CutPrefix(line, "ready ")
	if err != nil || !ok {
		p.stop()
		return nil, fmt.Errorf("server %s: wrote %q, error %v, want an address", r.server, line, err)
	}
	return &ownServer{p, clients.Target{Client: r.client, Addr: addr, Path: "/?watch=1"}}, nil
}

func (s *ownServer) publish(n int, interval time.Duration) error {
	return s.ask(nil, "publish %d %d", n, interval.Microseconds())
}

func (s *ownServer) usage() (u usage.Usage, err error) {
	err = s.ask(&u, "usage")
	return u, err
}

func (s *ownServer) target() clients.Target { return s.address }
