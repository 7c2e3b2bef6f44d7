//go:build !race

package components

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// readers is the environment variable with the directory of coredns and kube-state-metrics.
const readers = "LISTWATCH_READERS"

// leastLines is the least number of answers and metrics that are compared each time.
const leastLines = 100

// A reader returns what a program shows of a cluster, as sorted lines. A nil result means that
// it shows nothing yet.
type reader func(ctx context.Context) []string

// TestNamesAgreeThroughARelay compares the answers of a CoreDNS that reads a kube-apiserver with
// the answers of one that reads a relay.
func TestNamesAgreeThroughARelay(t *testing.T) {
	compareReaders(t, (*cluster).startCoreDNS)
}

// TestMetricsAgreeThroughARelay does the same with the metrics of kube-state-metrics.
func TestMetricsAgreeThroughARelay(t *testing.T) {
	compareReaders(t, (*cluster).startStateMetrics)
}

// compareReaders starts a program for each lane, changes the cluster, and waits after each change
// until the programs agree.
func compareReaders(t *testing.T, start func(*cluster, *testing.T, string) reader) {
	if os.Getenv(readers) == "" {
		t.Skip(readers + " names no directory; use make long-readers")
	}
	c := startCluster(t, startNewEtcd)
	c.startComponents(t, c.lanes[0].url)
	var both []reader
	var state []string
	for _, lane := range c.lanes {
		both = append(both, start(c, t, writeKubeconfig(t, lane.url, c.token)))
	}
	for _, change := range []struct {
		name string
		make func(*testing.T)
	}{{"create services", c.createServices}, {"remove endpoints", c.scaleDown}, {"delete services", c.deleteServices}} {
		change.make(t)
		state = agree(t, change.name, both, state)
	}
}

// agree waits until both readers show the same new state. The direct one must show it twice.
func agree(t *testing.T, change string, both []reader, before []string) (after []string) {
	t.Helper()
	var direct, relayed []string
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	defer func() {
		if t.Failed() {
			t.Logf("%s: only directly %q, only relayed %q", change, without(direct, relayed), without(relayed, direct))
		}
	}()
	took := eventually(t, "agreement after: "+change, func(context.Context) (bool, error) {
		direct, relayed = both[0](ctx), both[1](ctx)
		return len(direct) >= leastLines && !slices.Equal(direct, before) && slices.Equal(direct, relayed) &&
			slices.Equal(direct, both[0](ctx)), nil
	})
	t.Logf("%s: %d equal lines in %v, %d of them new", change, len(direct), took.Round(time.Millisecond),
		len(without(direct, before)))
	return direct
}

// without returns the lines of a that b does not have.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

const readNamespace = "readers"

// createServices creates services of each type, and pods with endpoints.
func (c *cluster) createServices(t *testing.T) {
	t.Helper()
	ctx, o := t.Context(), metav1.CreateOptions{}
	s := &scenario{t, c.client, readNamespace}
	namespace := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: readNamespace}}
	must[*core.Namespace](s)(c.client.CoreV1().Namespaces().Create(ctx, namespace, o))
	eventually(t, "a service account", func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts(readNamespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	labels := map[string]string{"app": "a"}
	must[*apps.StatefulSet](s)(c.client.AppsV1().StatefulSets(readNamespace).Create(ctx, &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: apps.StatefulSetSpec{
			Replicas: pointer(int32(5)), ServiceName: "headless-0", PodManagementPolicy: apps.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(core.RestartPolicyAlways),
		},
	}, o))
	for n := range 40 {
		for name, spec := range map[string]core.ServiceSpec{
			"cluster":  {},
			"headless": {ClusterIP: core.ClusterIPNone},
			"external": {Type: core.ServiceTypeExternalName, ExternalName: "www.example.com"},
		} {
			if spec.ExternalName == "" {
				spec.Selector = labels
				spec.Ports = []core.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}
			}
			service := &core.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, "-", n)}, Spec: spec}
			must[*core.Service](s)(c.client.CoreV1().Services(readNamespace).Create(ctx, service, o))
		}
	}
	c.awaitEndpoints(t, 5)
}

// scaleDown removes pods, and so endpoints.
func (c *cluster) scaleDown(t *testing.T) {
	t.Helper()
	sets := c.client.AppsV1().StatefulSets(readNamespace)
	s, err := sets.Get(t.Context(), "a", metav1.GetOptions{})
	if err == nil {
		s.Spec.Replicas = pointer(int32(2))
		_, err = sets.Update(t.Context(), s, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.awaitEndpoints(t, 2)
}

// deleteServices deletes one service of each type.
func (c *cluster) deleteServices(t *testing.T) {
	t.Helper()
	for _, name := range []string{"cluster-7", "headless-7", "external-7"} {
		if err := c.client.CoreV1().Services(readNamespace).Delete(t.Context(), name,
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitEndpoints waits until every slice of endpoints has n of them.
func (c *cluster) awaitEndpoints(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the endpoints", func(ctx context.Context) (bool, error) {
		l, err := c.client.DiscoveryV1().EndpointSlices(readNamespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(l.Items) < 80 {
			return false, err
		}
		for _, slice := range l.Items {
			if len(slice.Endpoints) != n {
				return false, fmt.Errorf("%s has %d endpoints", slice.Name, len(slice.Endpoints))
			}
		}
		return true, nil
	})
}

// startCoreDNS runs CoreDNS until the test ends. The reader looks up all names of all services.
func (c *cluster) startCoreDNS(t *testing.T, kubeconfig string) reader {
	t.Helper()
	address := ports.Address(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Corefile")
	text := fmt.Sprintf(`.:%s {
		bind %s
		errors
		kubernetes cluster.local in-addr.arpa {
			kubeconfig %s
			pods verified
			ttl 0
		}
	}`, port, host, kubeconfig)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startProgram(t, filepath.Join(os.Getenv(readers), "coredns"), "-conf", file)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}
	return func(ctx context.Context) []string {
		services, err := c.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		var lines []string
		for _, s := range services.Items {
			lines = append(lines, lookUp(ctx, resolver, &s)...)
		}
		for _, name := range []string{
			"cluster-7.readers", "headless-7.readers", "external-7.readers",
			"missing.readers", "a.missing",
		} {
			lines = append(lines, name+" "+answer(resolver.LookupHost(ctx, name+".svc.cluster.local.")))
		}
		pods, err := c.client.CoreV1().Pods(readNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		for _, p := range pods.Items {
			name := strings.ReplaceAll(p.Status.PodIP, ".", "-") + ".readers.pod.cluster.local."
			lines = append(lines, name+" "+answer(resolver.LookupHost(ctx, name)))
		}
		if slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, failed) }) {
			return nil
		}
		slices.Sort(lines)
		return lines
	}
}

// lookUp returns the answers for one service.
func lookUp(ctx context.Context, r *net.Resolver, s *core.Service) (lines []string) {
	name := s.Name + "." + s.Namespace + ".svc.cluster.local."
	add := func(what, text string) { lines = append(lines, name+" "+what+" "+text) }
	if s.Spec.ExternalName != "" {
		cname, err := r.LookupCNAME(ctx, name)
		add("CNAME", answer([]string{cname}, err))
		return lines
	}
	add("A", answer(r.LookupHost(ctx, name)))
	_, targets, err := r.LookupSRV(ctx, cmp.Or(s.Spec.Ports[0].Name, "any"), "tcp", name)
	var texts []string
	for _, t := range targets {
		texts = append(texts, fmt.Sprint(*t))
	}
	add("SRV", answer(texts, err))
	if s.Spec.ClusterIP != core.ClusterIPNone {
		add("PTR", answer(r.LookupAddr(ctx, s.Spec.ClusterIP)))
	}
	return lines
}

// failed is the text of any error, except the error that there are no records.
const failed = "failed"

// answer returns the text of an answer. It omits the text of errors, because they contain
// addresses, which differ.
func answer(values []string, err error) string {
	if notFound := (*net.DNSError)(nil); errors.As(err, &notFound) && notFound.IsNotFound {
		return "not found"
	}
	if err != nil {
		return failed
	}
	slices.Sort(values)
	return strings.Join(values, " ")
}

// startStateMetrics runs kube-state-metrics until the test ends. The reader omits the metrics that
// change all the time.
func (*cluster) startStateMetrics(t *testing.T, kubeconfig string) reader {
	t.Helper()
	address, telemetry := ports.Address(t), ports.Address(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	_, telemetryPort, _ := net.SplitHostPort(telemetry)
	startProgram(t, filepath.Join(os.Getenv(readers), "kube-state-metrics"), "--kubeconfig="+kubeconfig, "--host="+host,
		"--port="+port,
		"--telemetry-host="+host, "--telemetry-port="+telemetryPort)
	return func(ctx context.Context) (lines []string) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			return nil
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return nil
		}
		defer func() { _ = r.Body.Close() }()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "kube_lease_renew_time") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(lines)
		return lines
	}
}
