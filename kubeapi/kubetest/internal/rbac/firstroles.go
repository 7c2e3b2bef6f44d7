package rbac

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
)

// clusterRoles has the cluster roles for users of Kubernetes 1.37, and the roles from which they
// get their rules.
//
//go:embed clusterroles.json
var clusterRoles []byte

// FirstClusterRoles returns the cluster roles for users that every cluster has from the start:
// cluster-admin, admin, edit and view, and the roles from which they get their rules (Kubernetes,
// "Using RBAC Authorization", User-facing roles). All of them have their rules.
var FirstClusterRoles = sync.OnceValues(func() (roles [][]byte, err error) {
	var texts []json.RawMessage
	if err := json.Unmarshal(clusterRoles, &texts); err != nil {
		return nil, err
	}
	var all []*listwatch.Object
	for _, text := range texts { // a role comes after those from which it gets its rules
		o, err := listwatch.ParseObject(text)
		if err != nil {
			return nil, err
		}
		if o.Data, err = Aggregate(o.Data, all); err != nil {
			return nil, err
		}
		roles, all = append(roles, o.Data), append(all, o)
		slices.SortFunc(all, func(a, b *listwatch.Object) int { return cmp.Compare(a.Key.Name, b.Key.Name) })
	}
	return roles, nil
})
