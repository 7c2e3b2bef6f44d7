package reflector

import (
	"context"
	"math"

	"github.com/listwatch/listwatch"
)

// Listed is the state of a selection, without its contents. A follower that has the same objects at
// the same versions has reached that state, although no event or bookmark says so.
type Listed struct {
	Versions map[listwatch.Key]listwatch.Version
	// Newest is the version of the state. Seen is the version of its newest object.
	Newest, Seen listwatch.Version
}

// ListVersions lists the newest state of s.
func ListVersions(ctx context.Context, source listwatch.Source, s listwatch.Selection) (Listed, error) {
	l := Listed{Versions: make(map[listwatch.Key]listwatch.Version), Newest: math.MaxUint64}
	q := listwatch.Query{Selection: s, Limit: DefaultPageSize}
	for page, err := range Pages(ctx, source, q) {
		if err != nil {
			return l, err
		}
		l.Newest = min(l.Newest, page.Version)
		for _, o := range page.Items {
			l.Versions[o.Key] = o.Version
			l.Seen = max(l.Seen, o.Version)
		}
	}
	return l, nil
}
