package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// attackerEnv is an environment variable. If it holds the name of an attack, the test binary runs
// that attack instead of its tests. The variables URL, DEBUG, TIME and PID hold the arguments of
// the attack.
const attackerEnv = "LISTWATCH_ATTACKER"

// attackerAddress is the address from which attackers connect. It differs from the address of the
// innocent client, because the server limits each client separately.
const attackerAddress = "127.0.0.2"

// attackSecret is a part of the attackers' queries, which the server must not log.
const attackSecret = "attack-secret"

// An attack sends requests to a server until ctx ends.
type attack struct {
	name string
	run  func(ctx context.Context, a *attacker)
}

// attacks holds the attacks that TestAttacks runs, one after another, on the same server. Attacks
// that need a different server are in the other tests of this package, and in the tests of observe
// and store/bolt.
var attacks = slices.Concat(http1Attacks, http2Attacks, hostileRequests, spreadAttacks)

// An attacker is the state of the process that runs an attack.
type attacker struct {
	url, debug string
	server     int // the process ID
	client     *http.Client
	mu         sync.Mutex
	responses  map[string]int // guarded by mu; the number of responses by status
	unexpected string         // guarded by mu; the first message passed to fault
}

// runAttacker runs the attack with the given name, and exits.
func runAttacker(name string) {
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
	d, err := time.ParseDuration(os.Getenv("TIME"))
	if err != nil || i < 0 {
		fmt.Fprintln(os.Stderr, "unknown attack or time:", name, err)
		os.Exit(2)
	}
	a := &attacker{url: os.Getenv("URL"), debug: os.Getenv("DEBUG"), responses: make(map[string]int)}
	a.server, _ = strconv.Atoi(os.Getenv("PID"))
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddress)}}
	a.client = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 100}}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	attacks[i].run(ctx, a)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, status := range slices.Sorted(maps.Keys(a.responses)) {
		fmt.Printf("%s×%d ", status, a.responses[status])
	}
	if a.unexpected != "" {
		fmt.Fprintln(os.Stderr, a.unexpected)
		os.Exit(1)
	}
	os.Exit(0)
}

// count adds one to the number of responses with the given status.
func (a *attacker) count(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.responses[status]++
}

// fault records a failure, such as a response that the server must not send. The attacker prints
// the first one and exits with code 1.
func (a *attacker) fault(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unexpected = cmp.Or(a.unexpected, fmt.Sprintf(format, args...))
}

// parallel starts n goroutines, each of which calls f repeatedly until ctx ends. It waits for them.
func parallel(ctx context.Context, n int, f func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				f()
			}
		})
	}
	wg.Wait()
}

// dial opens a connection, which is closed when ctx ends. If dialing fails, it returns nil.
func (a *attacker) dial(ctx context.Context) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddress)}}
	c, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		time.Sleep(time.Millisecond)
		return nil
	}
	context.AfterFunc(ctx, func() { c.Close() })
	return c
}

// send sends a request, and drops the body of the response. header holds alternating names and
// values.
func (a *attacker) send(ctx context.Context, method, path, body string, header ...string) (status int) {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.fault("%v", err)
		return 0
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := a.client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			a.count("error")
		}
		return 0
	}
	defer res.Body.Close()
	a.count(strconv.Itoa(res.StatusCode))
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// exchange sends text on a new connection, and returns the status of the response, or 0 if the
// server closes the connection without a response.
func (a *attacker) exchange(ctx context.Context, text string) (status int) {
	c := a.dial(ctx)
	if c == nil {
		return 0
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		a.count("closed")
		return 0
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		a.count("closed")
		return 0
	}
	a.count(strconv.Itoa(res.StatusCode))
	return res.StatusCode
}

// hold sends text on a new connection, and keeps the connection open without reading until ctx
// ends.
func (a *attacker) hold(ctx context.Context, text string) {
	if c := a.dial(ctx); c != nil {
		_, _ = io.WriteString(c, text)
		<-ctx.Done()
	}
}

// holdUntilClosed is like hold, but it reads what the server sends, and returns when the server
// closes the connection.
func (a *attacker) holdUntilClosed(ctx context.Context, text string) {
	if c := a.dial(ctx); c != nil {
		defer c.Close()
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
		if ctx.Err() == nil {
			a.count("closed")
		}
	}
}
