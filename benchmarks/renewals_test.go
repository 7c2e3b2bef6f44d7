package benchmarks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/bolt"
)

// agents is the number of objects that live as long as they are renewed. Each agent renews its
// object every agentInterval.
const (
	agents        = 10_000
	agentInterval = 10 * time.Second
)

// BenchmarkRenewals compares agents that renew their objects with agents that write a heartbeat.
// Both use the same server, which keeps its objects in a file. It measures the processor time of
// the server for each request, the transactions, the growth of the file, and the latency.
func BenchmarkRenewals(b *testing.B) {
	data := filepath.Join(b.TempDir(), "data.db")
	s := newServerProcess(b, b.TempDir(), "--data", data, "--ttl", "things.storm.example.com=ttl")
	s.start()
	uids := make([]string, agents)
	each(agents, func(i int) error {
		body, err := s.send("POST", thingsPath("default"), "application/json", agentBody(i))
		var o struct{ Metadata listwatch.Metadata }
		if err == nil {
			err = json.Unmarshal(body, &o)
		}
		uids[i] = o.Metadata.UID
		return err
	}, b.Error)
	for name, patch := range map[string]func(i int) string{
		"renewals":   func(i int) string { return fmt.Sprintf(`{"metadata":{"uid":%q}}`, uids[i]) },
		"heartbeats": func(int) string { return fmt.Sprintf(`{"renewTime":%d}`, time.Now().UnixNano()) },
	} {
		b.Run(name, func(b *testing.B) { s.measureAgents(b, data, patch) })
	}
}

func agentBody(i int) string {
	return fmt.Sprintf(`{"apiVersion":"storm.example.com/v1","kind":"Thing","metadata":{"name":"a-%d"},"ttl":3600,"n":%d}`,
		i, i)
}

// send sends a request and returns the body of the response.
func (s *serverProcess) send(method, path, mediaType, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.addr+"/"+path,
		bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return text, err
}

// measureAgents lets each agent send b.N patches, one per interval.
func (s *serverProcess) measureAgents(b *testing.B, data string, patch func(i int) string) {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = agents
	transactions, size, cpu := s.metric("listwatch_store_commit_duration_seconds_count"), fileSize(b, data), s.cpu()
	took := make([]time.Duration, agents*b.N)
	start := time.Now()
	b.ResetTimer()
	var sent sync.WaitGroup
	for n := range took {
		time.Sleep(time.Until(start.Add(time.Duration(n) * agentInterval / agents)))
		sent.Go(func() {
			began, i := time.Now(), n%agents
			path := fmt.Sprintf("%s/a-%d", thingsPath("default"), i)
			if _, err := s.send("PATCH", path, "application/merge-patch+json", patch(i)); err != nil {
				b.Error(err)
			}
			took[n] = time.Since(began)
		})
	}
	sent.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64((s.cpu()-cpu).Microseconds())/float64(len(took)), "server-µs/request")
	b.ReportMetric(s.metric("listwatch_store_commit_duration_seconds_count")-transactions, "transactions")
	b.ReportMetric(float64(fileSize(b, data)-size)/(1<<20), "MiB-file")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}

func fileSize(b *testing.B, path string) int64 {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

// BenchmarkManyObjectsEnd measures how late the last of many objects is deleted that end together,
// in a file.
func BenchmarkManyObjectsEnd(b *testing.B) {
	const ttl = 20 * time.Second
	for b.Loop() {
		b.StopTimer()
		db := openFile(b, filepath.Join(b.TempDir(), "bench.db"), bolt.Options{})
		spec := thingResource
		spec.TTL = func([]byte) time.Duration { return ttl }
		c, err := db.Collection(spec)
		if err != nil {
			b.Fatal(err)
		}
		each(agents, func(i int) error {
			_, err := c.Create(b.Context(), thing(nameOf(i, 0), i))
			return err
		}, b.Error)
		if n := c.Stats().Objects; n != agents {
			b.Fatalf("%d objects are left before their end", n)
		}
		for i := range agents {
			key := listwatch.Key{Name: nameOf(i, 0)}
			if _, err := c.Renew(b.Context(), key, listwatch.Preconditions{}); err != nil {
				b.Fatal(err)
			}
		}
		end := time.Now().Add(ttl)
		b.StartTimer()
		for c.Stats().Objects > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		b.ReportMetric(time.Since(end).Seconds(), "s-late")
	}
}
