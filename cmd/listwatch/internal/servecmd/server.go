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
	for _, path := range o.crds {
		custom, err := s.readDefinitions(path)
		if err != nil {
			return nil, err
		}
		resources = append(resources, custom...)
	}
	return resources, nil
}

// readDefinitions returns the resources that the CustomResourceDefinitions in a file or a directory
// declare.
func (s *server) readDefinitions(path string) (resources []kubeapi.Resource, err error) {
	files, err := crd.Files(path)
	if err != nil {
		return nil, cli.Usagef("--crd: %w", err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, cli.Usagef("--crd: %w", err)
		}
		documents, err := crd.Documents(text)
		if err != nil {
			return nil, cli.Usagef("--crd %s: %w", file, err)
		}
		for _, document := range documents {
			d, err := crd.ParseJSON(document)
			if err != nil {
				return nil, cli.Usagef("--crd %s: %w", file, err)
			}
			for _, part := range d.Ignored {
				s.Log.Warn("a part of a CustomResourceDefinition has no effect", "file", file, "resource",
					d.QualifiedName(), "part", part)
			}
			resources = append(resources, d.Resource)
		}
		found += len(documents)
	}
	if found == 0 {
		return nil, cli.Usagef("--crd %s: it contains no CustomResourceDefinition", path)
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
