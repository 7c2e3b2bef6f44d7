package store

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/digest"
	"github.com/listwatch/listwatch/internal/history"
)

// A Part is a part of a union: the selected objects of Collection.
type Part struct {
	Collection *Collection
	listwatch.Selection
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
	var scopes []string
	isScoped := false
	for i, p := range parts {
		c := p.Collection
		b, ok := c.backend.(interface{ History() *history.Log })
		if !ok {
			return nil, badRequest("%s: a union needs collections of one database in memory or in a file, not in a %T",
				c.spec.QualifiedName(), c.backend)
		}
		q, err := c.narrow(listwatch.Query{Selection: p.Selection})
		if err != nil {
			return nil, err
		}
		logs[i] = history.Part{Log: b.History(), Selection: q.Selection}
		epoch = b.History().Describe().Epoch
		own := c.epoch(epoch)
		isScoped = isScoped || own != epoch
		scopes = append(scopes, c.spec.QualifiedName(), own)
	}
	if isScoped {
		epoch += "." + digest.Of(scopes...)
	}
	u, err := history.NewUnion(epoch, logs)
	if err != nil {
		return nil, err
	}
	return u, nil
}
