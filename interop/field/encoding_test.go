//go:build !race

package field

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const podsPath = "/api/v1/namespaces/default/pods"

// A protobufTest is a kube-apiserver and a client of it that speaks Protocol Buffers.
type protobufTest struct {
	*testing.T
	*kubeapiserver.Server
	http      *http.Client
	remote    *client.Remote
	transport string // the name of the transport of all watches
}

// TestClientSpeaksProtobuf runs our client and a relay with the encoding of Kubernetes' own
// clients. All bytes must equal those of the kube-apiserver.
func TestClientSpeaksProtobuf(t *testing.T) {
	path := os.Getenv(apiServer)
	if path == "" {
		t.Skip(apiServer + " names no program; use make field")
	}
	server := kubeapiserver.StartWith(t, path, kubeapiserver.Options{})
	network := transport.Network{TLS: &tls.Config{InsecureSkipVerify: true}}
	for _, c := range []transport.Client{
		&chunked.Client{Network: network}, &h2.Client{Network: network}, &websocket.Client{Network: network},
	} {
		t.Run(c.Name(), func(t *testing.T) {
			remote := &client.Remote{
				URL: server.URL + podsPath, Network: network, Transports: []transport.Client{c},
				Framings: []framing.Framer{kubeproto.Framing{}},
				Header: func(context.Context, bool) (http.Header, error) {
					return http.Header{"Authorization": {"Bearer " + server.Token}, "Origin": {server.URL}}, nil
				},
			}
			t.Cleanup(func() { _ = remote.Close() })
			plain := &http.Client{Transport: &http.Transport{TLSClientConfig: network.TLS}}
			p := &protobufTest{t, server, plain, remote, c.Name()}
			p.writes()
			p.lists()
			p.watches()
			p.errors()
			p.restarts()
			p.clear()
		})
	}
}

// get requests path from the kube-apiserver.
func (p *protobufTest) get(path string) *http.Response {
	p.Helper()
	r := testkit.Must(http.NewRequestWithContext(p.Context(), http.MethodGet, p.URL+path, nil))(p)
	r.Header.Set("Accept", kubeproto.Encoding{}.MediaType())
	r.Header.Set("Authorization", "Bearer "+p.Token)
	return testkit.Must(p.http.Do(r))(p)
}

// body returns the body of a response to a get.
func (p *protobufTest) body(path string) []byte {
	p.Helper()
	response := p.get(path)
	defer response.Body.Close()
	return testkit.Must(io.ReadAll(response.Body))(p)
}

func (p *protobufTest) pod(name, app string) []byte {
	p.Helper()
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(pod, &out); err != nil {
		p.Fatal(err)
	}
	return out.Bytes()
}

func key(name string) listwatch.Key { return listwatch.Key{Namespace: "default", Name: name} }

// patch applies a merge patch to a pod or to its status.
func (p *protobufTest) patch(name, subresource, patch string) *listwatch.Object {
	p.Helper()
	s := client.Subresource{Remote: p.remote, Name: subresource}
	return testkit.Must(s.Patch(p.Context(), key(name), listwatch.Patch{
		Type: listwatch.MergePatch, Data: []byte(patch),
	}))(p)
}

// writes creates, reads, replaces and deletes pods.
func (p *protobufTest) writes() {
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		created := testkit.Must(p.remote.Create(p.Context(), p.pod(name, []string{"web", "db"}[i%2])))(p)
		got := testkit.Must(p.remote.Get(p.Context(), created.Key))(p)
		if want := p.body(podsPath + "/" + name); !bytes.Equal(got.Data, want) || got.Version != created.Version {
			p.Errorf("%s: got %d bytes at %d, want %d at %d", name, len(got.Data), got.Version, len(want),
				created.Version)
		}
	}
	old := testkit.Must(p.remote.Get(p.Context(), key("e")))(p)
	changed := p.patch("e", "", `{"metadata":{"labels":{"app":"changed"}}}`)
	if _, err := p.remote.Replace(p.Context(), key("e"), old.Data); !errors.Is(err, listwatch.Conflict) {
		p.Errorf("replace of an old version: got %v, want Conflict", err)
	}
	again := testkit.Must(p.remote.Replace(p.Context(), key("e"), changed.Data))(p)
	if again.Labels["app"] != "changed" {
		p.Errorf("replace: got %v", again.Labels)
	}
	if _, err := p.remote.Delete(p.Context(), key("e"), listwatch.Preconditions{Version: 1}); !errors.Is(err,
		listwatch.Conflict) {
		p.Errorf("delete of version 1: got %v, want Conflict", err)
	}
	if _, err := p.remote.Delete(p.Context(), key("e"), listwatch.Preconditions{Version: again.Version}); err != nil {
		p.Error(err)
	}
}

// lists compares a list in pages with single objects.
func (p *protobufTest) lists() {
	q, found := listwatch.Query{Limit: 3}, 0
	for {
		page := testkit.Must(p.remote.List(p.Context(), q))(p)
		for _, o := range page.Items {
			if found++; !bytes.Equal(o.Data, p.body(podsPath+"/"+o.Key.Name)) {
				p.Errorf("the list has other bytes for %s than a get", o.Key)
			}
		}
		if page.Continue == "" {
			break
		}
		if page.Remaining != 1 {
			p.Errorf("%d objects remain, want 1", page.Remaining)
		}
		q.Continue = page.Continue
	}
	if d := p.remote.Describe(); found != 4 || d.Kind != "Pod" || d.APIVersion != "v1" {
		p.Errorf("got %d objects of %s %s, want 4 pods", found, d.APIVersion, d.Kind)
	}
}

// watches compares the events of the kube-apiserver with those of our client at the kube-apiserver,
// and at a relay.
func (p *protobufTest) watches() {
	fields := []string{"status.phase", "spec.nodeName", "spec.hostNetwork"}
	r := relay.Open(p.remote, relay.Options{Fields: fields})
	p.Cleanup(func() { _ = r.Close() })
	page := testkit.Must(r.List(p.Context(), listwatch.Query{}))(p)
	relayed := p.serve(r)
	type lane struct {
		selector                 string
		server, direct, throughs listwatch.Watcher
	}
	var lanes []lane
	from := listwatch.Query{
		Start: listwatch.StartAt, Version: page.Version, InitialEvents: listwatch.InitialEventsNo,
	}
	for _, selectors := range [][2]string{
		{},
		{"app=web", ""},
		{"app!=web", ""},
		{"", "status.phase=Running"},
		{"", "spec.nodeName!=n1"},
		{"", "metadata.name=a"},
	} {
		q := from
		q.Labels, q.Fields = testkit.Labels(p, selectors[0]), testkit.Fields(p, selectors[1])
		path := fmt.Sprintf("%s?watch=1&resourceVersion=%d&labelSelector=%s&fieldSelector=%s", podsPath, page.Version,
			q.Labels, q.Fields)
		lanes = append(lanes, lane{
			q.Labels.String() + q.Fields.String(), &serverWatch{body: p.get(path).Body},
			testkit.Watch(p, p.remote, q), testkit.Watch(p, relayed, q),
		})
	}
	counts := p.change()
	for i, l := range lanes {
		for n := range counts[i] {
			want := testkit.Read(p, l.server, 1)[0]
			for name, w := range map[string]listwatch.Watcher{"directly": l.direct, "relayed": l.throughs} {
				got := testkit.Read(p, w, 1)[0]
				if got.Type != want.Type || !bytes.Equal(got.Object.Data, want.Object.Data) {
					p.Errorf("%s, event %d of %q: got %v of %s@%d with %d bytes, want %v of %d bytes", name, n,
						l.selector, got.Type, got.Object.Key, got.Version, len(got.Object.Data), want.Type,
						len(want.Object.Data))
				}
			}
		}
	}
}

// serve serves r over the transport of the test, and returns a client for it.
func (p *protobufTest) serve(r *relay.Relay) *client.Remote {
	p.Helper()
	framings := testkit.Must(framing.NewRegistry(framing.JSON{}, kubeproto.Framing{}))(p)
	s := servertest.Start(p, r, servertest.Options{
		Configure: func(s *watchserver.Server) { s.Framings = framings }, TLS: p.transport == "h2",
	})
	return &client.Remote{
		URL: s.URL("/pods"), Network: s.Network, Framings: p.remote.Framings,
		Transports: []transport.Client{s.Client(p.transport)},
	}
}

// change makes objects enter and leave selections. It returns the number of events of each lane.
func (p *protobufTest) change() []int {
	p.patch("a", "status", `{"status":{"phase":"Running"}}`)
	p.patch("a", "", `{"metadata":{"labels":{"app":"db"}}}`)
	p.patch("b", "", `{"metadata":{"labels":{"app":"web"}}}`)
	p.patch("a", "status", `{"status":{"phase":"Succeeded"}}`)
	testkit.Must(p.remote.Create(p.Context(), p.pod("f", "web")))(p)
	if _, err := p.remote.Delete(p.Context(), key("b"), listwatch.Preconditions{}); err != nil {
		p.Error(err)
	}
	return []int{
		7, // b is marked and deleted
		6, // a is modified and leaves, b enters, f is added, b is marked and deleted
		3, // a enters, b leaves, a is modified
		3, // a enters, is modified and leaves
		7,
		3,
	}
}

// A serverWatch reads a watch of the kube-apiserver with the types of Kubernetes.
type serverWatch struct{ body io.ReadCloser }

func (w *serverWatch) Next(_ context.Context, dst []listwatch.Event) (int, error) {
	var size [4]byte
	if _, err := io.ReadFull(w.body, size[:]); err != nil {
		return 0, err
	}
	message := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(w.body, message); err != nil {
		return 0, err
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(message); err != nil {
		return 0, err
	}
	types := map[string]listwatch.EventType{
		"ADDED": listwatch.Added, "MODIFIED": listwatch.Modified, "DELETED": listwatch.Deleted,
	}
	dst[0] = listwatch.Event{Type: types[e.Type], Object: &listwatch.Object{Data: e.Object.Raw}}
	return 1, nil
}

func (w *serverWatch) Close() error { return w.body.Close() }

// errors checks that errors keep their codes and details. Their bodies are Protocol Buffers, too.
func (p *protobufTest) errors() {
	_, err := p.remote.Get(p.Context(), key("absent"))
	if e := listwatch.AsError(err); e == nil || e.Code != listwatch.NotFound || e.Details == nil ||
		e.Details.Name != "absent" {
		p.Errorf("get: got %v, want NotFound with the name", err)
	}
	_, err = p.remote.Create(p.Context(), p.pod("Not A Name", "web"))
	if e := listwatch.AsError(err); e == nil || e.Code != listwatch.Invalid || e.Details == nil ||
		len(e.Details.Causes) == 0 || e.Details.Causes[0].Field != "metadata.name" {
		p.Errorf("create: got %v, want Invalid with its cause", err)
	}
	future := listwatch.Query{Start: listwatch.StartAt, Version: 1 << 40}
	if _, err = p.remote.List(p.Context(), future); !errors.Is(err, listwatch.NotYet) {
		p.Errorf("a list of the future: got %v, want NotYet, which a cause of the Status says", err)
	}
}

// restarts checks that the bytes stay the same when the kube-apiserver and the relay restart, also
// for a client that resumes by a difference, and for one that skips states.
func (p *protobufTest) restarts() {
	options := relay.Options{Persist: persist.File{Path: filepath.Join(p.TempDir(), "copy")}}
	first := relay.Open(p.remote, options)
	remote := p.serve(first)
	open := testkit.Watch(p, remote, listwatch.Query{Bookmarks: true})
	var has listwatch.State
	for has.Version == 0 {
		if e := testkit.Read(p, open, 1)[0]; e.Type == listwatch.Synced {
			has = e.State()
		}
	}
	p.Server.Stop()
	if err := p.Server.Restart(); err != nil {
		p.Fatal(err)
	}
	eventually(p.T, "the kube-apiserver starts again", func(ctx context.Context) (bool, error) {
		_, err := p.remote.Create(ctx, p.pod("g", "web"))
		return err == nil || errors.Is(err, listwatch.AlreadyExists), nil
	})
	if _, err := p.remote.Delete(p.Context(), key("c"), listwatch.Preconditions{}); err != nil {
		p.Fatal(err)
	}
	changed := p.patch("d", "", `{"metadata":{"labels":{"app":"new"}}}`)
	var events []listwatch.Event
	var last *listwatch.Object
	for last == nil || last.Key.Name != "d" {
		if e := testkit.Read(p, open, 1)[0]; e.Type != listwatch.Bookmark {
			events, last = append(events, e), e.Object
		}
	}
	if !bytes.Equal(last.Data, changed.Data) || !bytes.Equal(last.Data, p.body(podsPath+"/d")) {
		p.Errorf("after a restart of the kube-apiserver: got %d bytes, want %d", len(last.Data), len(changed.Data))
	}
	_ = first.Close() // it saves its copy
	second := relay.Open(p.remote, options)
	p.Cleanup(func() { _ = second.Close() })
	remote = p.serve(second)
	resumed := testkit.Watch(p, remote, listwatch.Query{
		Start: listwatch.StartAt, Version: has.Version, InitialEvents: listwatch.InitialEventsNo,
	})
	for i, e := range testkit.Read(p, resumed, len(events)) {
		if want := events[i]; e.Type != want.Type || !bytes.Equal(e.Object.Data, want.Object.Data) {
			p.Errorf("resumed at another relay: got %v of %s, want %v of %s", e.Type, e.Object.Key, want.Type,
				want.Object.Key)
		}
	}
	difference := testkit.Read(p, testkit.Watch(p, remote, listwatch.Query{
		Start: listwatch.StartAt, Version: has.Version, InitialEvents: listwatch.InitialEventsYes, Bookmarks: true,
		Since: has, Conflate: -1,
	}), 4)
	for i, name := range []string{"d", "g"} {
		if e := difference[i]; e.Type != listwatch.Added || !bytes.Equal(e.Object.Data, p.body(podsPath+"/"+name)) {
			p.Errorf("a difference has %v of %s, want the bytes of %s", e.Type, e.Object.Key, name)
		}
	}
	var gone corev1.Pod
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(difference[2].Object.Data, nil, &gone)
	if _, ok := difference[3].Since(); !ok || err != nil || difference[2].Type != listwatch.Deleted ||
		gone.Name != "c" {
		p.Errorf("a difference ends with %v of %q, %v, want DELETED of c", difference[2].Type, gone.Name, err)
	}
}

func (p *protobufTest) clear() {
	page := testkit.Must(p.remote.List(p.Context(), listwatch.Query{}))(p)
	for _, o := range page.Items {
		if _, err := p.remote.Delete(p.Context(), o.Key, listwatch.Preconditions{}); err != nil {
			p.Error(err)
		}
	}
}
