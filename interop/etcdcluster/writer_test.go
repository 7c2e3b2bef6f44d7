package etcdcluster

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

// An outcome is what a writer knows of a write.
type outcome uint8

const (
	unknown outcome = iota // its answer was lost, or etcd's to the server
	acked
	refused // it was not done, and never will be
)

// An attempt is a write that was asked for.
type attempt struct {
	key          listwatch.Key
	mark         string            // what is written bears it; empty: it is a delete
	from         listwatch.Version // it was to be done to this version alone; zero: to any
	began, ended time.Duration
	outcome      outcome
	version      listwatch.Version // where acked; zero: the answer names none
	uid          string            // where acked: of what was deleted
}

// A look is a read of one object at its newest.
type look struct {
	key     listwatch.Key
	began   time.Duration
	version listwatch.Version // zero: it was not there
}

// desk is where writers hand in what they did.
type desk struct {
	rec *checker.Recorder

	mu sync.Mutex
	// Guarded by mu.
	attempts []attempt
	looks    []look
	newest   listwatch.Version // acknowledged
	wrong    []string
}

func (d *desk) enter(a attempt) {
	a.ended = d.rec.Elapsed()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts = append(d.attempts, a)
	if a.outcome == acked {
		d.newest = max(d.newest, a.version)
	}
}

func (d *desk) acknowledged() listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest
}

func (d *desk) complain(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrong = append(d.wrong, fmt.Sprintf(format, args...))
}

// counts returns how many attempts came to what.
func (d *desk) counts() (all [refused + 1]int, looks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.attempts {
		all[a.outcome]++
	}
	return all, len(d.looks)
}

// A writer writes to the objects that all writers share, at any server. It is for one goroutine.
type writer struct {
	name    string
	desk    *desk
	servers []*server
	rand    *rand.Rand
	http    *http.Client
	n       int
}

func newWriter(name string, d *desk, servers []*server, r *rand.Rand) *writer {
	return &writer{name: name, desk: d, servers: servers, rand: r, http: &http.Client{Transport: new(http.Transport), Timeout: 10 * time.Second}}
}

const names = 10

// run writes until ctx ends.
func (w *writer) run(ctx context.Context, pause time.Duration) {
	defer w.http.CloseIdleConnections()
	for rest(ctx, w.rand, pause) {
		key := listwatch.Key{Namespace: [...]string{"a", "b"}[w.rand.IntN(2)], Name: "n" + strconv.Itoa(w.rand.IntN(names))}
		switch w.rand.IntN(6) {
		case 0:
			w.send(http.MethodDelete, key, 0)
		case 1:
			if v := w.look(key); v != 0 {
				w.send(http.MethodPut, key, v)
			}
		case 2, 3:
			w.send(http.MethodPost, key, 0)
		default:
			w.send(http.MethodPut, key, 0)
		}
	}
}

// body returns an object with a new mark.
func (w *writer) body(key listwatch.Key, from listwatch.Version) (body []byte, mark string) {
	w.n++
	mark = fmt.Sprintf("%s-%d", w.name, w.n)
	version := ""
	if from != 0 {
		version = fmt.Sprintf(`"resourceVersion":"%d",`, from)
	}
	return fmt.Appendf(nil, `{"metadata":{%s"name":%q,"labels":{"tier":%q}},"spec":{"color":%q,"mark":%q,"fill":"%0*d"}}`, version,
		key.Name, [...]string{"gold", "silver", "iron"}[w.rand.IntN(3)], [...]string{"red", "blue"}[w.rand.IntN(2)], mark, w.rand.IntN(600)+1, 0), mark
}

// send writes one object, at any server, and takes down what comes of it. An answer is not waited for longer than the client's timeout, but the end
// of the run cuts none off.
func (w *writer) send(method string, key listwatch.Key, from listwatch.Version) {
	s := w.servers[w.rand.IntN(len(w.servers))]
	a := attempt{key: key, from: from, began: w.desk.rec.Elapsed()}
	url, body := s.of(key.Namespace), []byte(nil)
	if method != http.MethodPost {
		url += "/" + key.Name
	}
	if method != http.MethodDelete {
		body, a.mark = w.body(key, from)
	}
	code, answer := w.do(method, url, body)
	switch {
	case code == 0 || code >= 500 || code == http.StatusTooManyRequests:
	case code < 300:
		a.outcome = acked
		if method == http.MethodDelete {
			a.uid, _ = rawjson.String(rawjson.Lookup(answer, "details", "uid"))
		} else if o, err := listwatch.ParseObject(answer); err == nil {
			a.version = o.Version
		}
		if a.uid == "" && a.version == 0 {
			w.desk.complain("%s of %v was answered by %s", method, key, answer)
		}
	case code == http.StatusNotFound, code == http.StatusConflict:
		a.outcome = refused
	default:
		a.outcome = refused
		w.desk.complain("%s of %v: %d %s", method, key, code, answer)
	}
	w.desk.enter(a)
}

// do makes a request. Code zero: there was no answer.
func (w *writer) do(method, url string, body []byte) (code int, answer []byte) {
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		w.desk.complain("%v", err)
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := w.http.Do(r)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

// look reads one object, at any server, and returns its version; zero: it is not there, or nobody knows.
func (w *writer) look(key listwatch.Key) listwatch.Version {
	s := w.servers[w.rand.IntN(len(w.servers))]
	l := look{key: key, began: w.desk.rec.Elapsed()}
	code, answer := w.do(http.MethodGet, s.of(key.Namespace)+"/"+key.Name, nil)
	switch code {
	case http.StatusOK:
		o, err := listwatch.ParseObject(answer)
		if err != nil {
			w.desk.complain("GET of %v: %v in %s", key, err, answer)
			return 0
		}
		l.version = o.Version
	case http.StatusNotFound:
	case 0, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return 0
	default:
		w.desk.complain("GET of %v: %d %s", key, code, answer)
		return 0
	}
	w.desk.mu.Lock()
	defer w.desk.mu.Unlock()
	w.desk.looks = append(w.desk.looks, l)
	return l.version
}

// transact writes several objects in one transaction of etcd, past the servers, until ctx ends. Nobody else writes these objects.
func (w *writer) transact(ctx context.Context, raw *clientv3.Client, pause time.Duration) {
	for rest(ctx, w.rand, pause) {
		var ops []clientv3.Op
		var attempts []attempt
		for _, i := range w.rand.Perm(4)[:2+w.rand.IntN(3)] {
			key := listwatch.Key{Namespace: "a", Name: "t" + strconv.Itoa(i)}
			body, m := w.body(key, 0)
			body = bytes.Replace(body, []byte(`{"metadata":{`), fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"a","uid":%q,`, m), 1)
			attempts = append(attempts, attempt{key: key, mark: m, began: w.desk.rec.Elapsed()})
			ops = append(ops, clientv3.OpPut(dir+"a/"+key.Name, string(body)))
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		got, err := raw.Txn(limited).Then(ops...).Commit()
		cancel()
		for _, a := range attempts {
			if err == nil {
				a.outcome, a.version = acked, listwatch.Version(got.Header.Revision)
			}
			w.desk.enter(a)
		}
	}
}

// rest waits for a random part of d; false: ctx has ended.
func rest(ctx context.Context, r *rand.Rand, d time.Duration) bool {
	t := time.NewTimer(1 + time.Duration(r.Int64N(int64(d))))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
