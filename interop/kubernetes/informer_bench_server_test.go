package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// benchObjectCount is the number of objects of a benchmark.
const benchObjectCount = 100_000

// A dataset holds the objects of a benchmark and the clients that follow them.
type dataset struct {
	resource string
	// object returns the state of object i after its change number round; round 0 is the initial
	// state. The object has about 1 KiB.
	object  func(i, round int) []byte
	clients map[string]benchClient
}

var datasets = map[string]dataset{
	"configmaps": {"configmaps", configMapJSON, benchClients[*corev1.ConfigMap, *minimalConfigMap](
		"configmaps", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().ConfigMaps().Informer()
		},
	)},
	"pods": {"pods", podJSON, benchClients[*corev1.Pod, *minimalPod](
		"pods", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Pods().Informer()
		},
	)},
}

// runBenchServer is the main function of the server process. It sends its URL, and changes
// every object on request.
func runBenchServer(l linePipe, d dataset) error {
	// Keep the complete history, because a client may lag behind by all changes.
	db := memory.Open(memory.Options{History: listwatch.Retention{Age: -1, Bytes: -1}})
	resource, _ := kubeapi.FindResource(kubeapi.DefaultResources(), d.resource)
	objects, err := db.Collection(resource.CollectionSpec())
	if err != nil {
		return err
	}
	var api kubeapi.Handler
	if err := api.Add(resource, objects); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, &api) }()
	for i := range benchObjectCount {
		if _, err := objects.Create(context.Background(), d.object(i, 0)); err != nil {
			return err
		}
	}
	return updateOnRequest(l, "http://"+listener.Addr().String(), d, objects)
}

// updateOnRequest sends line to the benchmark. Then, for every line that the benchmark sends, it
// updates all objects and responds.
func updateOnRequest(l linePipe, line string, d dataset, objects *store.Collection) error {
	for round := 1; ; round++ {
		if _, err := l.request(line); err != nil {
			return nil // the benchmark is done
		}
		for i := range benchObjectCount {
			_, err := objects.Update(context.Background(), benchKey(i), listwatch.Preconditions{},
				func(*listwatch.Object) ([]byte, error) {
					return d.object(i, round), nil
				})
			if err != nil {
				return err
			}
		}
		line = "done"
	}
}

func benchKey(i int) listwatch.Key {
	return listwatch.Key{Namespace: fmt.Sprintf("team-%d", i%10), Name: fmt.Sprintf("settings-of-service-%06d", i)}
}

func configMapJSON(i, round int) []byte {
	key := benchKey(i)
	var b strings.Builder
	fmt.Fprintf(&b, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,`, key.Name,
		key.Namespace)
	fmt.Fprintf(&b, `"labels":{"app":"service-%06d","app.kubernetes.io/managed-by":"bench","tier":"tier-%d"},`,
		i, i%100)
	fmt.Fprintf(&b, `"annotations":{"example.com/owner":"team-%d@example.com"}},"data":{"round":"%d"`, i%10, round)
	for n := range 6 {
		fmt.Fprintf(&b, `,"setting-%d.properties":"key.%d=%s"`, n, n, strings.Repeat(string(rune('a'+(i+n)%26)), 72))
	}
	b.WriteString("}}")
	return []byte(b.String())
}

func podJSON(i, round int) []byte {
	key := benchKey(i)
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,
		"labels":{"app":"service-%06d","tier":"tier-%d"},"annotations":{"example.com/round":"%d"}},
		"spec":{"nodeName":"node-%d","serviceAccountName":"default","restartPolicy":"Always","containers":[{"name":"web",
			"image":"registry.example.com/web:1.%d","imagePullPolicy":"IfNotPresent","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],
			"env":[{"name":"LEVEL","value":"info"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]},
		"status":{"phase":"Running","podIP":"10.0.%d.%d","hostIP":"10.1.0.%d","startTime":"2026-11-21T10:00:00Z","conditions":[
			{"type":"Ready","status":"True","lastTransitionTime":"2026-11-21T10:00:00Z"},
			{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-21T10:00:00Z"}]}}`,
		key.Name, key.Namespace, i, i%100, round, i%500, i%7, i/256%256, i%256, i%250)
}
