package kubeapi

import (
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A row is an object of which a table shows cells, at a moment. What a cell has found in it the next one doesn't search for again.
type row struct {
	object Value
	now    time.Time
	node   rawjson.Node
	pod    *podSummary // nil: no cell has asked
}

func newRow(object []byte, now time.Time) *row {
	return &row{object: object, now: now, node: rawjson.NewNode(object)}
}

// at returns the value at a path of member names.
func (r *row) at(path ...string) Value { return r.node.Lookup(path...) }
