package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/ports"
)

// attackTimeEnv is the environment variable that holds the duration of each attack, such as 10s.
// make attack sets it. If it is not set, the attacks are skipped, because they take minutes and
// need a server built without the race detector.
const attackTimeEnv = "LISTWATCH_ATTACK_TIME"

const (
	// maxAttackMemory limits the growth of the server's memory above its size before the first
	// attack.
	maxAttackMemory = 256 << 20
	// maxInnocentDelay limits the delays of the innocent client if the machine runs nothing else.
	// If the test has half of the processors, the limit is twice as high, and so on.
	maxInnocentDelay = 500 * time.Millisecond
	// attackedBytes is the size of the collection that the attacks read.
	attackedBytes = 20 << 20
)

// TestAttacks runs each attack in a process of its own, while an innocent client updates an object
// fifty times a second and watches it. An attack must neither fill the server's memory nor delay
// the innocent client. For comparison, the first and the last line of the logged table measure the
// server without an attack.
func TestAttacks(t *testing.T) {
	each, err := time.ParseDuration(os.Getenv(attackTimeEnv))
	if err != nil {
		t.Skip("run make attack")
	}
	s := startAttackedServer(t)
	before := s.memory("VmRSS")
	t.Logf("%-24s %6s %9s %9s %9s %9s  %s", "attack", "events", "p50", "p99", "memory", "processors",
		"responses to the attacker")
	for _, a := range slices.Concat([]attack{{name: "none"}}, attacks, []attack{{name: "none"}}) {
		t.Run(a.name, func(t *testing.T) {
			begin := s.processorTicks()
			delays, responses := s.runBeside(t, a, each)
			share := s.processorTicks().shareSince(begin)
			slices.Sort(delays)
			p50, p99 := delays[len(delays)/2], delays[len(delays)*99/100]
			added := s.memory("VmHWM") - before
			t.Logf("%-24s %6d %9v %9v %5d MiB %8.0f%%  %s", a.name, len(delays), p50.Round(10*time.Microsecond),
				p99.Round(10*time.Microsecond), added>>20, 100*share, responses)
			if limit := time.Duration(float64(maxInnocentDelay) / share); p99 > limit {
				t.Errorf("the 99th percentile of the innocent client is %v, want at most %v with %.0f%% of the processors",
					p99, limit, 100*share)
			}
			if added > maxAttackMemory {
				t.Errorf("the server took %d MiB more than before all attacks, want at most %d", added>>20,
					maxAttackMemory>>20)
			}
		})
	}
	if code, _, body := request(t, "GET", s.url+configMap(innocentName), ""); code != http.StatusOK {
		t.Errorf("the object of the innocent client: got %d %s, want 200", code, body)
	}
	_ = s.process.cmd.Process.Signal(syscall.SIGTERM)
	if code, stderr := s.process.exit(); code != 0 || strings.Contains(stderr, attackSecret) ||
		strings.Contains(stderr, "panic") {
		t.Errorf("exit code %d, want 0; the log must have neither queries nor panics:\n%.5000s", code, stderr)
	}
}

// An attackedServer is a server in a process of its own.
type attackedServer struct {
	process    *process
	url, debug string
	remote     *client.Remote // the innocent client watches with it
	innocent   *http.Client   // the innocent client writes with it
}

func startAttackedServer(t *testing.T) *attackedServer {
	debug := ports.Address(t)
	p := startProcess(t, nil, "serve", "--addr", "127.0.0.1:0", "--debug-addr", debug, "--memory", "160MiB",
		"--history-bytes", "32MiB",
		"--max-connections", "4000", "--max-watches-per-client", "1000", "--quota-bytes", "64MiB", "--quota-objects",
		"5000")
	s := &attackedServer{
		process: p, url: p.awaitURL(t), debug: "http://" + debug,
		innocent: &http.Client{Transport: &http.Transport{}},
	}
	t.Cleanup(s.innocent.CloseIdleConnections)
	const size = 100 << 10
	put := func(path, object string) {
		if code, _, body := request(t, http.MethodPost, s.url+path, object); code != http.StatusCreated {
			t.Fatalf("POST %s: got %d %.200s", path, code, body)
		}
	}
	for i := range attackedBytes / size {
		put(podsPath, largePod(fmt.Sprint("large-", i), size))
	}
	put(podsPath, `{"metadata":{"name":"list"},"list":[`+strings.Repeat("0,", 60_000)+`0]}`)
	put(configMaps, `{"metadata":{"name":"`+innocentName+`"}}`)
	s.remote = &client.Remote{URL: s.url + configMaps}
	return s
}

// memory returns a value of /proc/PID/status in bytes.
func (s *attackedServer) memory(name string) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.cmd.Process.Pid))
	if err != nil {
		return 0 // not Linux
	}
	_, rest, _ := bytes.Cut(data, []byte(name+":"))
	kib, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	return kib << 10
}

// forgetPeak resets the server's peak memory (VmHWM) to its current memory (VmRSS).
func (s *attackedServer) forgetPeak() {
	// If this fails, the peak of the earlier attacks also counts for the later ones.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.process.cmd.Process.Pid), []byte("5"), 0)
}

const (
	configMaps   = "/api/v1/namespaces/innocent/configmaps"
	innocentName = "innocent"
)

func configMap(name string) string { return configMaps + "/" + name }

// runBeside runs the attack for the given duration while the innocent client writes and watches. It
// returns the time from the start of each write to its event, and the attacker's report.
func (s *attackedServer) runBeside(t *testing.T, a attack, d time.Duration) (delays []time.Duration, responses string) {
	t.Helper()
	w, err := s.remote.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s.forgetPeak()
	end := time.Now().Add(d)
	var out, errs bytes.Buffer
	if a.run != nil {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), attackerEnv+"="+a.name, "URL="+s.url, "DEBUG="+s.debug, "TIME="+d.String(),
			fmt.Sprint("PID=", s.process.cmd.Process.Pid))
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("the attacker: %v\n%s", err, errs.String())
			}
			responses = strings.TrimSpace(out.String())
		}()
	}
	for i := 0; time.Now().Before(end) || len(delays) < 10; i++ {
		start, mark := time.Now(), fmt.Sprintf("%s %d", a.name, i)
		s.update(t, mark)
		await(t, w, mark)
		delays = append(delays, time.Since(start))
		time.Sleep(20*time.Millisecond - time.Since(start))
	}
	return delays, ""
}

// await waits until w returns the event of the update with the given mark.
func await(t *testing.T, w listwatch.Watcher, mark string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for batch := make([]listwatch.Event, 16); ; {
		n, err := w.Next(ctx, batch)
		if err != nil {
			t.Fatalf("the innocent watcher: %v", err)
		}
		for _, e := range batch[:n] {
			if e.Object != nil && strings.Contains(string(e.Object.Data), `"at":"`+mark+`"`) {
				return
			}
		}
	}
}

// update writes the object of the innocent client. It retries refused writes, and the time for the
// retries counts as delay.
func (s *attackedServer) update(t *testing.T, mark string) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; {
		body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"at":%q}}`, innocentName, mark)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+configMap(innocentName),
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.innocent.Do(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // so that the next write uses the same connection
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("status %d", res.StatusCode)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the innocent client cannot write: %v; the server wrote:\n%.5000s", err, s.process.stderr)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
