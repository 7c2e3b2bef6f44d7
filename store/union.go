package store

import (
	"fmt"
	"hash/fnv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// A Part is a part of a union: the objects of Collection that Query selects. Only the selection of
// Query has an effect.
type Part struct {
	Collection *Collection
	Query      listwatch.Query
}

// MaxParts is the maximum number of parts of a union.
const MaxParts = 32

// Union returns a Source of the objects of all parts, which must be different collections of one
// memory.DB or one bolt.DB. Otherwise the error has code Invalid.
//
// A watch of the union is one stream in the order of versions, and its initial events are the state
// of all parts at one version, in the order of parts. So one version is the resume point of all
// parts. If one of them lacks history, the watch is Expired. Kind and apiVersion tell to which part
// an object belongs. Bookmarks have kind List and apiVersion v1. A list has the objects of all
// parts at one version, in one page.
//
// The selection in the Query of a list or a watch of the union has no effect, nor have Limit and
// Since.
func Union(parts ...Part) (listwatch.Source, error) {
	if len(parts) > MaxParts {
		return nil, badRequest("%d collections: a union has at most %d", len(parts), MaxParts)
	}
	logs := make([]history.Part, len(parts))
	var epoch string
	scopes, isScoped := fnv.New64a(), false
	for i, p := range parts {
		c := p.Collection
		b, ok := c.backend.(interface{ History() *history.Log })
		if !ok {
			return nil, badRequest("%s: a union needs collections of one database in memory or in a file, not in a %T",
				c.spec.QualifiedName(), c.backend)
		}
		q, err := c.narrow(p.Query)
		if err != nil {
			return nil, err
		}
		logs[i] = history.Part{Log: b.History(), Query: q}
		epoch = b.History().Describe().Epoch
		own := c.scope.epoch(epoch)
		isScoped = isScoped || own != epoch
		_, _ = fmt.Fprintln(scopes, c.spec.QualifiedName(), own) // a hash has no errors
	}
	if isScoped {
		epoch = fmt.Sprintf("%s.%x", epoch, scopes.Sum(nil))
	}
	u, err := history.NewUnion(epoch, logs)
	if err != nil {
		return nil, err
	}
	return u, nil
}
