//go:build !race

package agents

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func tokenOf(n int) string     { return fmt.Sprint("token-of-agent-", n) }
func nodeName(n int) string    { return fmt.Sprintf("node-%04d", n) }
func podName(n int) string     { return fmt.Sprintf("pod-%05d", n) }
func serviceName(n int) string { return fmt.Sprintf("service-%04d", n) }

// users returns the users of the agents, as lines of a file with tokens. Each agent is a user, as
// the pods of a DaemonSet are: their tokens differ.
func users() (lines []string) {
	for n := range *agents {
		lines = append(lines, fmt.Sprintf("%s,agent-%d,%d,agents", tokenOf(n), n, n))
	}
	return lines
}

// An admin sends requests to a kube-apiserver as the administrator.
type admin struct {
	testing.TB
	url, token string
	client     *http.Client
}

func newAdmin(t testing.TB, url, token string) *admin {
	return &admin{t, url, token, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}}
}

func (a *admin) send(ctx context.Context, method, path, contentType, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + a.token}, "Content-Type": {contentType}}
	response, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %s", method, path, response.Status, text)
	}
	return err
}

const (
	namespacePath = "/api/v1/namespaces/agents"
	slicesPath    = "/apis/discovery.k8s.io/v1/namespaces/agents/endpointslices"
)

// populate creates the objects of the cluster, and the rights of the agents.
func (a *admin) populate() {
	a.Helper()
	create := func(path, object string) {
		if err := a.send(a.Context(), http.MethodPost, path, "application/json", object); err != nil {
			a.Error(err)
		}
	}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	create("/api/v1/namespaces", `{"metadata":{"name":"agents"}}`)
	create(rbac+"clusterroles", `{"metadata":{"name":"agents"},"rules":[{"apiGroups":["","discovery.k8s.io"],`+
		`"resources":["pods","services","endpointslices","nodes"],"verbs":["list","watch"]}]}`)
	create(rbac+"clusterrolebindings",
		`{"metadata":{"name":"agents"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",`+
			`"kind":"ClusterRole","name":"agents"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"agents"}]}`)
	// About as many annotations as kubelet, CNI and the cloud provider write.
	note := strings.Repeat("x", 800)
	each(*nodes, func(n int) {
		create("/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"note":%q}}}`, nodeName(n), note))
	})
	each(*nodes*podsPerNode, func(n int) {
		create(namespacePath+"/pods", fmt.Sprintf(
			`{"metadata":{"name":%q,"annotations":{"note":%q}},"spec":{"nodeName":%q,"containers":[{"name":"c","image":"i"}]}}`,
			podName(n), note, nodeName(n%*nodes)))
	})
	each(services, func(n int) {
		create(namespacePath+"/services", fmt.Sprintf(
			`{"metadata":{"name":%q},"spec":{"ports":[{"port":80}]}}`, serviceName(n)))
		create(slicesPath,
			fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4",`+
				`"endpoints":[{"addresses":["10.1.1.1"]},{"addresses":["10.1.1.2"]}],"ports":[{"port":80}]}`,
				serviceName(n), serviceName(n)))
	})
	if a.Failed() {
		a.FailNow()
	}
}

// each calls f for the numbers below n, eight at a time.
func each(n int, f func(n int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// write changes objects at a steady rate for the given time: in each round, that is twice a second,
// one node, one endpoint slice and three pods. It returns the number of writes.
func (a *admin) write(d time.Duration) (writes int) {
	a.Helper()
	rounds := time.NewTicker(time.Second / 2)
	defer rounds.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); writes += 5 {
		round := writes / 5
		paths := []string{"/api/v1/nodes/" + nodeName(round%*nodes), slicesPath + "/" + serviceName(round%services)}
		for i := range 3 {
			paths = append(paths, namespacePath+"/pods/"+podName((3*round+i)%(*nodes*podsPerNode)))
		}
		for _, path := range paths {
			change := fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d-%d"}}}`, round, time.Now().UnixNano())
			if err := a.send(a.Context(), http.MethodPatch, path, "application/merge-patch+json", change); err != nil {
				a.Fatal(err)
			}
		}
		<-rounds.C
	}
	return writes
}
