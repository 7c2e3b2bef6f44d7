package runner

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/clients"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/usage"
)

// KubernetesEnv is the environment variable that makes the test binary of interop/rivals run a
// Kubernetes API server. Its etcd is another process. The value of the variable selects the HTTP/2
// implementation: "h2" for transport/h2, "library" for the API server's own.
const KubernetesEnv = "LISTWATCH_RIVALS_SERVE"

// kubernetesStart limits the time until etcd and the API server are ready.
const kubernetesStart = 2 * time.Minute

const (
	definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"events.rivals.example.com"},
		"spec":{"group":"rivals.example.com","scope":"Namespaced","names":{"plural":"events","singular":"event","kind":"Event"},
		"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	objectsPath     = "/apis/rivals.example.com/v1/namespaces/default/events"
	// watchListPath requests a watch that starts with the state, so that clients need no list.
	watchListPath = objectsPath +
		"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)

// A kubernetesServer is a Kubernetes API server for custom resources. This process writes through
// the server's API, so the server's CPU time includes the writes.
type kubernetesServer struct {
	*process
	client *http.Client
	url    string
	token  string
}

// kubernetesServers maps the servers of rivals to values of KubernetesEnv.
var kubernetesServers = map[string]string{"kubernetes": "library", "kubernetes-h2": "h2"}

// startKubernetes starts the test binary of interop/rivals. http2 is the value of KubernetesEnv.
func startKubernetes(binary, http2 string, objects int) (server, error) {
	if binary == "" {
		return nil, errors.New("the Kubernetes API server needs -kubernetes; make rivals builds it")
	}
	p, err := start([]string{KubernetesEnv + "=" + http2}, binary, "-test.run=^TestServe$")
	if err != nil {
		return nil, err
	}
	s := &kubernetesServer{process: p, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}}
	if err = s.prepare(objects); err != nil {
		s.stop()
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return s, nil
}

// prepare waits for the server and creates the objects.
func (s *kubernetesServer) prepare(objects int) error {
	line, err := s.answer(kubernetesStart)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(line, "ready %s %s", &s.url, &s.token); err != nil {
		return fmt.Errorf("wrote %q, want an address and a token: %w", line, err)
	}
	if err := s.do(http.MethodPost, definitionsPath, []byte(definition)); err != nil {
		return err
	}
	for begin := time.Now(); ; {
		err := s.do(http.MethodGet, objectsPath, nil)
		if err == nil {
			break
		}
		if time.Since(begin) > answerTimeout {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return s.create(objects)
}

// create creates n objects, several at the same time.
func (s *kubernetesServer) create(n int) error {
	const writers = 16
	kind := event.Kind{APIVersion: "rivals.example.com/v1", Kind: "Event"}
	var group sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		group.Go(func() {
			for i := w; i < n; i += writers {
				o := kind.New(fmt.Sprintf("object-%05d", i), 0, time.Now())
				if err := s.do(http.MethodPost, objectsPath, o.JSON); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// do sends a request, which must succeed.
func (s *kubernetesServer) do(method, path string, body []byte) error {
	r, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, res.Status, data)
	}
	return err
}

// publish patches the first object.
func (s *kubernetesServer) publish(n int, interval time.Duration) error {
	for range n {
		next := time.Now().Add(interval)
		if err := s.do(http.MethodPatch, objectsPath+"/object-00000", event.Patch(time.Now())); err != nil {
			return err
		}
		time.Sleep(time.Until(next))
	}
	return nil
}

func (s *kubernetesServer) usage() (u usage.Usage, err error) {
	err = s.ask(&u, "usage")
	return u, err
}

func (s *kubernetesServer) target() clients.Target {
	return clients.Target{
		Client: "h2-tls", Addr: strings.TrimPrefix(s.url, "https://"), Path: watchListPath, Token: s.token,
	}
}
