package store

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/digest"
	"github.com/listwatch/listwatch/internal/history"
)

var _ listwatch.Uniter = (*Collection)(nil)

// Union implements [listwatch.Uniter]. The parts must be different collections of one memory.DB or
// one bolt.DB. Bookmarks of the union have kind List and apiVersion v1.
func (c *Collection) Union(parts ...listwatch.Part) (listwatch.Source, error) {
	logs := make([]history.Part, len(parts))
	var epoch string
	var scopes []string
	isScoped := false
	for i, p := range parts {
		c, ok := p.Source.(*Collection)
		if !ok {
			return nil, badRequest("a union needs collections of one database, not a %T", p.Source)
		}
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
