package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// neverLoaded is a store whose collections take for ever to load.
type neverLoaded struct {
	inMemory
	begun func()
}

func (n neverLoaded) CollectionContext(ctx context.Context, _ store.CollectionSpec) (*store.Collection, error) {
	n.begun()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestASignalEndsALoad(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	s := &service{db: neverLoaded{inMemory{memory.Open(memory.Options{})}, signal}, api: &kubeapi.Handler{}}
	if err := startError(ctx, s.addResources(ctx, nil)); err == nil || err.Error() != "was told to end before it was ready" {
		t.Errorf("got %v, want that it was told to end", err)
	}
}

func TestFlagsOfEtcdThatDoNotGoTogetherAreRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.1:1"
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"--etcd-prefix /x":                                                       {exitUsage, "--etcd-prefix needs --etcd"},
		"--etcd-read-only":                                                       {exitUsage, "--etcd-read-only needs --etcd"},
		"--etcd " + url + " --data x":                                            {exitUsage, "exclude each other"},
		"--etcd " + url + " --etcd-layout mine":                                  {exitUsage, `want "listwatch" or "kubernetes"`},
		"--etcd " + url + " --etcd-user u":                                       {exitUsage, "go together"},
		"--etcd " + url + " --etcd-cert " + empty:                                {exitUsage, "go together"},
		"--etcd unix:///tmp/x":                                                   {exitUsage, "want http or https"},
		"--etcd " + url + " --etcd-ca " + empty:                                  {exitFailure, "no certificate"},
		"--etcd " + url + " --etcd-ca " + dir + "/none":                          {exitFailure, "none"},
		"--etcd " + url + " --etcd-user u --etcd-password-file " + dir + "/none": {exitFailure, "none"},
	} {
		p := start(t, append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(args)...)...)
		code := p.exit(t)
		if said := p.stderr.String(); code != want.code || !strings.Contains(said, want.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, and it said %q; want %d and %q in one line", args, code, said, want.code, want.says)
		}
	}
}
