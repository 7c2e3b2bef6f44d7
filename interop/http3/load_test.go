package http3

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// loadEnv is the environment variable that makes this program a load process, which holds the
// clients of a benchmark.
const loadEnv = "LISTWATCH_HTTP3_LOAD" // its value is a loadSpec in JSON

// A loadSpec describes the clients of a load process.
type loadSpec struct {
	URL                  string
	HTTP3                bool
	Connections, Streams int // and the number of watches on each connection
	// Names makes the watch with number n select the object n-N.
	Names bool
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(loadEnv); spec != "" {
		if err := serveLoad(spec); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// latencies are the times from each write until a watch had its event.
type latencies struct {
	mu      sync.Mutex
	changed *sync.Cond
	all     []time.Duration // guarded by mu
}

// serveLoad opens the watches. For each line with a number on its standard input, it waits until it
// has received that many events, and prints the 50th, 95th and 99th percentile and the maximum of
// the latencies since the previous line.
func serveLoad(text string) error {
	var spec loadSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	l := &latencies{}
	l.changed = sync.NewCond(&l.mu)
	var opened sync.WaitGroup
	for c := range spec.Connections {
		tr := spec.transport()
		for s := range spec.Streams {
			url := spec.URL
			if spec.Names {
				url += "&fieldSelector=metadata.name%3Dn-" + strconv.Itoa(c*spec.Streams+s)
			}
			resp, err := (&http.Client{Transport: tr}).Get(url)
			if err != nil {
				return err
			}
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", resp.Status, readAll(resp.Body))
			}
			opened.Go(func() { l.read(resp.Body) })
		}
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		fmt.Println(l.wait(n))
	}
	return in.Err()
}

func (s loadSpec) transport() http.RoundTripper {
	insecure := &tls.Config{InsecureSkipVerify: true} // the certificate is for 127.0.0.1
	if s.HTTP3 {
		return &http3.Transport{TLSClientConfig: insecure, QUICConfig: quicConfig, DisableCompression: true}
	}
	return &http.Transport{
		TLSClientConfig: insecure, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxConnsPerHost: 1,
	}
}

func (l *latencies) read(body io.Reader) {
	in := bufio.NewReaderSize(body, 4<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			fmt.Fprintln(os.Stderr, "load: a watch has ended:", err)
			return
		}
		_, after, _ := bytes.Cut(line, []byte(`"sent":`))
		number, _, _ := bytes.Cut(after, []byte(","))
		sent, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil {
			continue // not an event of the benchmark
		}
		taken := time.Since(time.Unix(0, sent))
		l.mu.Lock()
		l.all = append(l.all, taken)
		l.mu.Unlock()
		l.changed.Signal()
	}
}

func (l *latencies) wait(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.all) < n {
		l.changed.Wait()
	}
	slices.Sort(l.all)
	at := func(q float64) int64 { return int64(l.all[min(int(float64(len(l.all))*q), len(l.all)-1)]) }
	report := fmt.Sprint(at(0.5), at(0.95), at(0.99), at(1))
	l.all = l.all[:0]
	return report
}

// A load controls a load process.
type load struct {
	in  io.Writer
	out *bufio.Reader
}

// startLoad starts a load process, and returns when all watches are open. wrap is the beginning of
// its command line.
func startLoad(b *testing.B, spec loadSpec, wrap ...string) *load {
	b.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		b.Fatal(err)
	}
	args := append(slices.Clone(wrap), os.Args[0])
	cmd := exec.CommandContext(b.Context(), args[0], args[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), loadEnv+"="+string(text)), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	l := &load{in, bufio.NewReader(out)}
	if line := l.line(b); line != "ready" {
		b.Fatalf("the load process printed %q, want ready", line)
	}
	return l
}

func (l *load) line(b *testing.B) string {
	line, err := l.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// wait waits for n events, and returns the percentiles of their latencies.
func (l *load) wait(b *testing.B, n int) (p50, p95, p99, last time.Duration) {
	b.Helper()
	fmt.Fprintln(l.in, n)
	if _, err := fmt.Sscan(l.line(b), &p50, &p95, &p99, &last); err != nil {
		b.Fatal(err)
	}
	return p50, p95, p99, last
}
