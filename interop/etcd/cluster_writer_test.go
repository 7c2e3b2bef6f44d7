package etcd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// An outcome is the result of a write from the point of view of its writer.
type outcome uint8

const (
	outcomeUnknown outcome = iota // the response, or etcd's response to the server, was lost
	outcomeAcknowledged
	outcomeRefused // the write was not done and will never be done
)

// A writeAttempt is a write that a client requested.
type writeAttempt struct {
	key          listwatch.Key
	mark         string            // the value of spec.mark, which is unique, or "" for a delete
	from         listwatch.Version // the version to replace, or 0 for any version
	began, ended time.Duration
	outcome      outcome
	version      listwatch.Version // the version of the write, or 0 if the response has none
	uid          string            // the uid of the object, for an acknowledged delete
}

// A singleRead is a consistent read of one object.
type singleRead struct {
	key     listwatch.Key
	began   time.Duration
	version listwatch.Version // 0 if the object did not exist
}

// A clientLog records the requests of all clients, and any violations of the guarantees.
type clientLog struct {
	recorder *checker.Recorder

	mu sync.Mutex
	// Guarded by mu.
	attempts     []writeAttempt
	reads        []singleRead
	acknowledged listwatch.Version // the newest acknowledged version
	violations   []string
}

// add records a finished write.
func (c *clientLog) add(a writeAttempt) {
	a.ended = c.recorder.Elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, a)
	if a.outcome == outcomeAcknowledged {
		c.acknowledged = max(c.acknowledged, a.version)
	}
}

func (c *clientLog) newestAcknowledged() listwatch.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acknowledged
}

func (c *clientLog) report(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// counts returns the numbers of writes by outcome, and the number of reads.
func (c *clientLog) counts() (writes [outcomeRefused + 1]int, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.attempts {
		writes[a.outcome]++
	}
	return writes, len(c.reads)
}

// A clusterWriter writes objects that all writers share, at random servers. It must be used
// by one goroutine only.
type clusterWriter struct {
	name    string
	log     *clientLog
	servers []*serverProcess
	rand    *rand.Rand
	http    *http.Client
	n       int
}

func newClusterWriter(name string, d *clientLog, servers []*serverProcess, r *rand.Rand) *clusterWriter {
	return &clusterWriter{
		name: name, log: d, servers: servers, rand: r,
		http: &http.Client{Transport: new(http.Transport), Timeout: 10 * time.Second},
	}
}

const nameCount = 10

// run writes until ctx ends, with random pauses.
func (w *clusterWriter) run(ctx context.Context, pause time.Duration) {
	defer w.http.CloseIdleConnections()
	for sleepRandomly(ctx, w.rand, pause) {
		key := listwatch.Key{
			Namespace: [...]string{"a", "b"}[w.rand.IntN(2)],
			Name:      "n" + strconv.Itoa(w.rand.IntN(nameCount)),
		}
		switch w.rand.IntN(6) {
		case 0:
			w.send(http.MethodDelete, key, 0)
		case 1:
			if v := w.read(key); v != 0 {
				w.send(http.MethodPut, key, v)
			}
		case 2, 3:
			w.send(http.MethodPost, key, 0)
		default:
			w.send(http.MethodPut, key, 0)
		}
	}
}

// body returns the JSON of an object with a new unique mark. If from is not 0, the object has that
// resourceVersion.
func (w *clusterWriter) body(key listwatch.Key, from listwatch.Version) (body []byte, mark string) {
	w.n++
	mark = fmt.Sprintf("%s-%d", w.name, w.n)
	version := ""
	if from != 0 {
		version = fmt.Sprintf(`"resourceVersion":"%d",`, from)
	}
	return fmt.Appendf(nil,
		`{"metadata":{%s"name":%q,"labels":{"tier":%q}},"spec":{"color":%q,"mark":%q,"fill":"%0*d"}}`, version,
		key.Name, [...]string{"gold", "silver", "iron"}[w.rand.IntN(3)], [...]string{"red", "blue"}[w.rand.IntN(2)],
		mark, w.rand.IntN(600)+1, 0), mark
}

// send writes one object at a random server and records the result. The request is not
// canceled at the end of the run: only the client's timeout limits it.
func (w *clusterWriter) send(method string, key listwatch.Key, from listwatch.Version) {
	s := w.servers[w.rand.IntN(len(w.servers))]
	a := writeAttempt{key: key, from: from, began: w.log.recorder.Elapsed()}
	url, body := s.collectionURL(key.Namespace), []byte(nil)
	if method != http.MethodPost {
		url += "/" + key.Name
	}
	if method != http.MethodDelete {
		body, a.mark = w.body(key, from)
	}
	code, response := w.do(method, url, body)
	switch {
	case code == 0 || code >= 500 || code == http.StatusTooManyRequests:
	case code < 300:
		a.outcome = outcomeAcknowledged
		if method == http.MethodDelete {
			a.uid, _ = rawjson.String(rawjson.Lookup(response, "details", "uid"))
		} else if o, err := listwatch.ParseObject(response); err == nil {
			a.version = o.Version
		}
		if a.uid == "" && a.version == 0 {
			w.log.report("%s of %v: response %s has no version and no uid", method, key, response)
		}
	case code == http.StatusNotFound, code == http.StatusConflict:
		a.outcome = outcomeRefused
	default:
		a.outcome = outcomeRefused
		w.log.report("%s of %v: unexpected response %d %s", method, key, code, response)
	}
	w.log.add(a)
}

// do sends a request. The returned code is 0 if there was no response.
func (w *clusterWriter) do(method, url string, body []byte) (code int, response []byte) {
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		w.log.report("%v", err)
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := w.http.Do(r)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	if response, err = io.ReadAll(res.Body); err != nil {
		return 0, nil
	}
	return res.StatusCode, response
}

// read reads one object at a random server. It returns the version, or 0 if the object does
// not exist or the read failed.
func (w *clusterWriter) read(key listwatch.Key) listwatch.Version {
	s := w.servers[w.rand.IntN(len(w.servers))]
	r := singleRead{key: key, began: w.log.recorder.Elapsed()}
	code, response := w.do(http.MethodGet, s.collectionURL(key.Namespace)+"/"+key.Name, nil)
	switch code {
	case http.StatusOK:
		o, err := listwatch.ParseObject(response)
		if err != nil {
			w.log.report("GET of %v: %v in %s", key, err, response)
			return 0
		}
		r.version = o.Version
	case http.StatusNotFound:
	case 0, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return 0
	default:
		w.log.report("GET of %v: unexpected response %d %s", key, code, response)
		return 0
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	w.log.reads = append(w.log.reads, r)
	return r.version
}

// transact writes several objects in one etcd transaction, without a server, repeatedly
// until ctx ends. No other writer uses these objects.
func (w *clusterWriter) transact(ctx context.Context, raw *clientv3.Client, pause time.Duration) {
	for sleepRandomly(ctx, w.rand, pause) {
		var ops []clientv3.Op
		var attempts []writeAttempt
		for _, i := range w.rand.Perm(4)[:2+w.rand.IntN(3)] {
			key := listwatch.Key{Namespace: "a", Name: "t" + strconv.Itoa(i)}
			body, m := w.body(key, 0)
			body = bytes.Replace(body, []byte(`{"metadata":{`),
				fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"a","uid":%q,`,
					m), 1)
			attempts = append(attempts, writeAttempt{key: key, mark: m, began: w.log.recorder.Elapsed()})
			ops = append(ops, clientv3.OpPut(keyPrefix+"a/"+key.Name, string(body)))
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		got, err := raw.Txn(limited).Then(ops...).Commit()
		cancel()
		for _, a := range attempts {
			if err == nil {
				a.outcome, a.version = outcomeAcknowledged, listwatch.Version(got.Header.Revision)
			}
			w.log.add(a)
		}
	}
}

// sleepRandomly sleeps for a random time up to d. It returns false if ctx ends first.
func sleepRandomly(ctx context.Context, r *rand.Rand, d time.Duration) bool {
	t := time.NewTimer(1 + time.Duration(r.Int64N(int64(d))))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
