//go:build !race

package components

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const nodes = 3

// startNodes creates nodes and runs a stand-in for their kubelets at the kube-apiserver until the
// test ends: it keeps the nodes ready, and moves pods through their phases.
func startNodes(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for n := range nodes {
		node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", n)}}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		keepReady(ctx, client, node.Name)
	}
	running.Go(func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				for n := range nodes {
					keepReady(ctx, client, fmt.Sprint("node-", n))
				}
			case <-ctx.Done():
				return
			}
		}
	})
	factory := informers.NewSharedInformerFactory(client, time.Second) // repeats what has failed
	kubelet := &kubelet{ctx, client}
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { kubelet.handle(o.(*core.Pod)) },
		UpdateFunc: func(_, o any) { kubelet.handle(o.(*core.Pod)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel) // runs before Shutdown
}

// keepReady writes the status of a node, as kubelets do. An error is repeated at the next time.
func keepReady(ctx context.Context, client kubernetes.Interface, name string) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	resources := core.ResourceList{
		core.ResourceCPU: resource.MustParse("8"), core.ResourceMemory: resource.MustParse("16Gi"),
		core.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Capacity, node.Status.Allocatable = resources, resources
	node.Status.Conditions = []core.NodeCondition{{
		Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(),
		LastTransitionTime: metav1.Now(),
	}}
	_, _ = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
}

// A kubelet stands in for the kubelets of all nodes.
type kubelet struct {
	ctx    context.Context // ends with the test
	client kubernetes.Interface
}

// handle takes the next step in the life of a pod. Errors are repeated at the next resync.
func (k *kubelet) handle(p *core.Pod) {
	pods := k.client.CoreV1().Pods(p.Namespace)
	switch {
	case p.Spec.NodeName == "":
	case p.DeletionTimestamp != nil:
		now := int64(0)
		_ = pods.Delete(k.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case p.Status.Phase == core.PodPending:
		p = p.DeepCopy()
		p.Status.Phase = core.PodRunning
		if p.Spec.RestartPolicy != core.RestartPolicyAlways { // a pod of a job
			p.Status.Phase = core.PodSucceeded
		}
		now := metav1.Now()
		p.Status.StartTime = &now
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(p.UID)) // always succeeds
		p.Status.PodIP = netip.AddrFrom4([4]byte{10, 1, byte(hash.Sum32()), byte(hash.Sum32() >> 8)}).String()
		p.Status.PodIPs = []core.PodIP{{IP: p.Status.PodIP}}
		for _, c := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodReady} {
			p.Status.Conditions = append(p.Status.Conditions,
				core.PodCondition{Type: c, Status: core.ConditionTrue, LastTransitionTime: now})
		}
		_, _ = pods.UpdateStatus(k.ctx, p, metav1.UpdateOptions{})
	}
}
