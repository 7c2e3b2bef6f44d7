//go:build !race

package field

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"k8s.io/apimachinery/pkg/util/wait"
	"pgregory.net/rapid"
)

// sequencesInCI and seedInCI are the number of random sequences and the seed in continuous
// integration. The flags -rapid.checks and -rapid.seed override them.
const (
	sequencesInCI = "25"
	seedInCI      = "3"
)

// TestRandomReadsInProtobuf writes objects of built-in kinds at random, and reads them directly and
// through a relay. The responses in Protobuf must be the same, byte for byte. Other resources
// change all the time, and both servers restart now and then.
func TestRandomReadsInProtobuf(t *testing.T) {
	c := startCluster(t, func(t testing.TB) string { return etcdtest.Start(t, nil).URL })
	for name, value := range map[string]string{"rapid.checks": sequencesInCI, "rapid.seed": seedInCI} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = flag.Set(name, f.DefValue) }) // the default is valid
		}
	}
	create := c.direct.send(t, http.MethodPost, "/api/v1/namespaces", nil, jsonType, `{"metadata":{"name":"other"}}`)
	if create.code != http.StatusCreated {
		t.Fatalf("%d %s", create.code, create.body)
	}
	s := &sequence{cluster: c, test: t, counts: map[string]int{}, stopWriter: c.startWriter(t)}
	defer func() { s.stopWriter() }()
	rapid.Check(t, s.run)
	t.Logf("%d sequences: %v", s.number, s.counts)
}

const jsonType = "application/json"

// A sequence writes and reads objects at random. Nothing else writes them, so two reads without a
// write in between must return the same state. One sequence follows the other.
type sequence struct {
	*cluster
	test     *testing.T
	number   int            // of the sequence
	counts   map[string]int // the number of actions of each kind
	kinds    []int          // the indexes in randomKinds of what is written and read
	versions []string       // versions that the API server can still list and watch
	watches  []*watchPair

	stopWriter func() // stops the changes of other resources
}

func (s *sequence) run(r *rapid.T) {
	s.number++
	s.versions, s.watches = nil, nil
	defer func() {
		for _, w := range s.watches {
			w.direct.close()
			w.relayed.close()
		}
	}()
	for _, n := range namespaces {
		s.write(r, http.MethodPost, "/api/v1/namespaces", jsonType, `{"metadata":{"name":"`+s.own(n)+`"}}`)
	}
	s.versions = []string{s.newestVersion(s.test)}
	s.kinds = []int{drawIndex(r), drawIndex(r)}
	actions := map[string]func(*rapid.T){
		"create": s.create, "create again": s.create, "patch": s.patch, "patch again": s.patch, "delete": s.delete,
		"list": s.list, "pages": s.pages, "get": s.get, "watch": s.watch, "watch again": s.watch, "restart": s.restart,
	}
	for name, action := range actions {
		actions[name] = func(r *rapid.T) {
			action(r)
			s.counts[name]++
		}
	}
	r.Repeat(actions)
	s.settle(r)
}

// namespaces are the namespaces of a sequence. In them, the sequence has objects with these names.
var (
	namespaces = []string{"a", "b"}
	names      = []string{"x", "y"}
)

// own returns the name that an object without a namespace has in this sequence.
func (s *sequence) own(name string) string { return fmt.Sprintf("random-%d-%s", s.number, name) }

// A kind is a built-in resource.
type kind struct {
	group, plural string
	isGlobal      bool // its objects have no namespaces
	object        string
	patches       []string // merge patches
	statuses      []string // merge patches of the status
	fields        []string // field selectors
}

var randomKinds = []*kind{
	{
		group: "/api/v1", plural: "pods", object: `"spec":{"containers":[{"name":"c","image":"i"}]}`,
		patches: []string{`{"spec":{"activeDeadlineSeconds":100}}`},
		statuses: []string{
			`{"status":{"phase":"Running","podIP":"10.1.1.1"}}`, `{"status":{"phase":"Failed","podIP":null}}`,
		},
		fields: []string{
			"status.phase=Running", "status.phase!=Running", "spec.nodeName=", "status.podIP=10.1.1.1",
			"spec.hostNetwork=false",
		},
	},
	{
		group: "/api/v1", plural: "configmaps", object: `"data":{"a":"b"}`,
		patches: []string{
			`{"data":{"a":null}}`, `{"data":{"a":"` + strings.Repeat("c", 40<<10) + `"}}`, `{"data":{"e":""}}`,
		},
	},
	{
		group: "/api/v1", plural: "services", object: `"spec":{"clusterIP":"None","ports":[{"port":80}]}`,
		patches: []string{`{"spec":{"publishNotReadyAddresses":true}}`, `{"spec":{"publishNotReadyAddresses":null}}`},
		fields:  []string{"spec.type=ClusterIP", "spec.clusterIP!=None"},
	},
	{
		group: "/apis/discovery.k8s.io/v1", plural: "endpointslices",
		object: `"addressType":"IPv4","endpoints":[{"addresses":["10.1.1.1"]}]`, patches: []string{`{"endpoints":[]}`},
	},
	{
		group: "/apis/apps/v1", plural: "deployments",
		object: `"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},` +
			`"spec":{"containers":[{"name":"c","image":"i"}]}}}`,
		patches:  []string{`{"spec":{"replicas":0}}`, `{"spec":{"paused":true}}`},
		statuses: []string{`{"status":{"replicas":1}}`, `{"status":null}`},
	},
	{
		group: "/apis/autoscaling/v1", plural: "horizontalpodautoscalers",
		object:  `"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"d"}}`,
		patches: []string{`{"spec":{"targetCPUUtilizationPercentage":50}}`},
	},
	{
		group: "/apis/autoscaling/v2", plural: "horizontalpodautoscalers",
		object:  `"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"d"}}`,
		patches: []string{`{"spec":{"minReplicas":2}}`},
	},
	{
		group: "/api/v1", plural: "nodes", isGlobal: true, object: `"spec":{}`,
		patches:  []string{`{"spec":{"unschedulable":true}}`, `{"spec":{"unschedulable":null}}`},
		statuses: []string{`{"status":{"capacity":{"cpu":"1500m","memory":"1Gi"}}}`},
	},
}

// collection returns the path of the objects of k in a namespace, or in all namespaces.
func (s *sequence) collection(k *kind, namespace string) string {
	if k.isGlobal || namespace == "" {
		return k.group + "/" + k.plural
	}
	return k.group + "/namespaces/" + s.own(namespace) + "/" + k.plural
}

// drawObject returns the path of an object, which may not exist.
func (s *sequence) drawObject(r *rapid.T, k *kind) (collection, path string) {
	collection, name := s.collection(k, draw(r, "namespace", namespaces...)), draw(r, "name", names...)
	if k.isGlobal {
		name = s.own(name)
	}
	return collection, collection + "/" + name
}

func drawIndex(r *rapid.T) int {
	return rapid.IntRange(0, len(randomKinds)-1).Draw(r, "index of a kind")
}

func (s *sequence) drawKind(r *rapid.T) *kind { return randomKinds[draw(r, "kind", s.kinds...)] }

func draw[T any](r *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(r, label)
}

// write sends a write, through one of the endpoints, and records the version after it.
func (s *sequence) write(r *rapid.T, method, path, contentType, body string) {
	at := s.direct
	if draw(r, "through the relay", false, true) {
		at = s.relayed
	}
	a := at.exchange(r, s.test.Context(), method, path, contentType, protobufType, body)
	if a.code >= 500 {
		r.Fatalf("%s: %s %s: %d %s", at.name, method, path, a.code, a.body)
	}
	if len(s.versions) > 0 {
		s.versions = append(s.versions, s.newestVersion(s.test))
	}
}

func (s *sequence) create(r *rapid.T) {
	k := s.drawKind(r)
	collection, path := s.drawObject(r, k)
	metadata := fmt.Sprintf(`"name":%q,"labels":{"lane":%q}`, path[strings.LastIndex(path, "/")+1:],
		draw(r, "lane", "a", "b"))
	s.write(r, http.MethodPost, collection, jsonType, `{"metadata":{`+metadata+`},`+k.object+`}`)
}

func (s *sequence) patch(r *rapid.T) {
	k := s.drawKind(r)
	_, path := s.drawObject(r, k)
	patches := []string{
		`{"metadata":{"labels":{"lane":"a"}}}`, `{"metadata":{"labels":{"lane":"b"}}}`,
		`{"metadata":{"labels":{"lane":null}}}`, `{"metadata":{"annotations":{"a":"<ü\u2028>"}}}`, "{}",
	}
	patch := draw(r, "patch", slices.Concat(patches, k.patches, k.statuses)...)
	if slices.Contains(k.statuses, patch) {
		path += "/status"
	}
	s.write(r, http.MethodPatch, path, "application/merge-patch+json", patch)
}

func (s *sequence) delete(r *rapid.T) {
	k := s.drawKind(r)
	collection, path := s.drawObject(r, k)
	if draw(r, "all", false, false, true) && !k.isGlobal {
		path = collection
	}
	s.write(r, http.MethodDelete, path+"?gracePeriodSeconds=0", "", "")
}

// restart kills the kube-apiserver or the relay, and starts it again.
func (s *sequence) restart(r *rapid.T) {
	switch rapid.IntRange(0, 20).Draw(r, "restart") {
	case 1:
		s.restartServer(r)
	case 2:
		s.restartRelay(r)
	default:
		r.Skip("rarely")
	}
}

func (s *sequence) restartServer(r *rapid.T) {
	s.settle(r)
	s.stopWriter()
	s.server.Stop()
	if err := s.server.Restart(); err != nil {
		r.Fatal(err)
	}
	for _, e := range []*endpoint{s.direct, s.relayed} {
		s.awaitPods(s.test, e)
	}
	// The kube-apiserver has forgotten the earlier versions.
	s.versions = []string{s.newestVersion(s.test)}
	for _, w := range s.watches {
		// The version must come from the cache of the resource, which may be newer than
		// versions[0].
		version := s.versionOf(r, w.direct.scope.path)
		w.direct.reopen(r, s.test.Context(), s.direct, version)
		if w.mayExpire = true; w.relayed.isPassedOn {
			w.relayed.reopen(r, s.test.Context(), s.relayed, version)
		}
	}
	s.stopWriter = s.cluster.startWriter(s.test)
	s.counts["restart of the kube-apiserver"]++
}

func (s *sequence) restartRelay(r *rapid.T) {
	s.settle(r)
	s.relay.Kill()
	s.startRelay(s.test)
	s.awaitPods(s.test, s.relayed)
	for _, w := range s.watches {
		w.relayed.reopen(r, s.test.Context(), s.relayed, "")
	}
	s.counts["restart of the relay"]++
}

// An answer is a response to a request of a sequence.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// exchange sends a request.
func (e *endpoint) exchange(
	r *rapid.T, ctx context.Context, method, path, contentType, accept, body string,
) answer {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, e.config.Host+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	request.Header = http.Header{"Accept": {accept}}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := e.client.Do(request)
	if err != nil {
		r.Fatalf("%s: %s %s: %v", e.name, method, path, err)
	}
	defer response.Body.Close()
	var data bytes.Buffer
	if _, err := data.ReadFrom(response.Body); err != nil {
		r.Fatalf("%s: %s %s: %v", e.name, method, path, err)
	}
	return answer{response.StatusCode, response.Header, data.Bytes()}
}

// eventual calls f until it returns an empty text. If that takes too long, it reports the last
// text.
func (s *sequence) eventual(r *rapid.T, f func() string) {
	var last string
	err := wait.PollUntilContextTimeout(s.test.Context(), 10*time.Millisecond, waitTimeout, true,
		func(context.Context) (bool, error) {
			last = f()
			return last == "", nil
		})
	if err != nil {
		r.Fatal(last)
	}
}
