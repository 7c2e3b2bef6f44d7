package informer

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

// benchObjects is how many the server of a benchmark has.
const benchObjects = 100_000

// A dataset is what a benchmark is about.
type dataset struct {
	resource string
	// object is the i-th one, about 1 KiB, after so many changes.
	object      func(i, round int) []byte
	contestants map[string]contestant
}

var datasets = map[string]dataset{
	"configmaps": {"configmaps", configMapJSON, contestantsOf[*corev1.ConfigMap, *ownConfigMap](
		"configmaps", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().ConfigMaps().Informer()
		},
	)},
	"pods": {"pods", podJSON, contestantsOf[*corev1.Pod, *ownPod](
		"pods", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Pods().Informer()
		},
	)},
}

// serve is the server's process. It says where it is, and changes every object whenever it is told to.
func serve(l lines, d dataset) error {
	// Whoever measures may be behind by all changes there are.
	db := memory.Open(memory.Options{HistoryAge: -1, HistoryBytes: -1})
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
	for i := range benchObjects {
		if _, err := objects.Create(context.Background(), d.object(i, 0)); err != nil {
			return err
		}
	}
	return answer(l, "http://"+listener.Addr().String(), d, objects)
}

func answer(l lines, said string, d dataset, objects *store.Collection) error {
	for round := 1; ; round++ {
		if _, err := l.ask(said); err != nil {
			return nil // the parent is done
		}
		for i := range benchObjects {
			_, err := objects.Update(context.Background(), benchKey(i), store.Preconditions{}, func(*listwatch.Object) ([]byte, error) {
				return d.object(i, round), nil
			})
			if err != nil {
				return err
			}
		}
		said = "done"
	}
}

func benchKey(i int) listwatch.Key {
	return listwatch.Key{Namespace: fmt.Sprintf("team-%d", i%10), Name: fmt.Sprintf("settings-of-service-%06d", i)}
}

func configMapJSON(i, round int) []byte {
	key := benchKey(i)
	var b strings.Builder
	fmt.Fprintf(&b, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,`, key.Name, key.Namespace)
	fmt.Fprintf(&b, `"labels":{"app":"service-%06d","app.kubernetes.io/managed-by":"bench","tier":"tier-%d"},`, i, i%100)
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
