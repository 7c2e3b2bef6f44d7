package etcd_test

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
)

// Several servers can share a collection in etcd. The example requires an etcd at
// 127.0.0.1:2379, so it is compiled but not run.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"http://127.0.0.1:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	flags, err := db.CollectionContext(ctx, store.CollectionSpec{Kind: "Flag"})
	if err != nil {
		fmt.Println(err)
		return
	}
	flag, err := flags.Create(ctx, []byte(`{"metadata": {"generateName": "flag-"}, "enabled": true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	// The list contains the flag even if another server with the same etcd serves the list.
	page, err := flags.List(ctx, listwatch.Query{})
	fmt.Println(len(page.Items), page.Version >= flag.Version, err)
}

// Open reports an etcd that it cannot reach.
func ExampleOpen_unreachable() {
	_, err := etcd.Open(context.Background(),
		etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}, Timeout: 100 * time.Millisecond})
	fmt.Println(listwatch.CodeOf(err))
	// Output: unavailable
}

// The servers of listwatch and kube-apiserver can share custom resources in one etcd, with this
// layout and the prefix /registry.
func ExampleKubernetesLayout() {
	fmt.Println(etcd.KubernetesLayout(store.CollectionSpec{APIVersion: "example.com/v1", Kind: "Widget"}))
	fmt.Println(etcd.KubernetesLayout(store.CollectionSpec{Kind: "Pod"}))
	// Output:
	// example.com/widgets
	// pods
}
