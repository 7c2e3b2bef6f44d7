package servecmd

import (
	"context"
	"os"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/watchserver"
)

// A server holds the listeners, the database and the API handler of the serve command.
type server struct {
	listen.Listeners
	db  database
	api *kubeapi.Handler
}

// every calls f at intervals until ctx ends. The first call is after one interval.
func every(ctx context.Context, interval time.Duration, f func()) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}

// readResources returns the resources that the flags --resource and --crd declare.
func (s *server) readResources(o *serveOptions) ([]kubeapi.Resource, error) {
	var resources []kubeapi.Resource
	for _, text := range o.resources {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			return nil, cli.UsageError(err)
		}
		resources = append(resources, r)
	}
	for _, file := range o.crds {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, cli.Usagef("--crd: %w", err)
		}
		definitions, err := crd.Parse(text)
		if err != nil {
			return nil, cli.Usagef("--crd %s: %w", file, err)
		}
		for _, d := range definitions {
			for _, part := range d.Ignored {
				s.Log.Warn("a part of a CustomResourceDefinition has no effect", "file", file, "resource",
					d.QualifiedName(), "part", part)
			}
			resources = append(resources, d.Resource)
		}
	}
	return resources, nil
}

// serveOptions contains the flags of serve.
type serveOptions struct {
	listen.Options
	resources []string
	crds      []string
	store     storeOptions
	demo      bool
	maxBody   cli.ByteSize
	shared    watchserver.SharedCompression
}
