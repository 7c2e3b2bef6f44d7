package history

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/listwatch/listwatch"
)

// List implements [listwatch.Source]. A version in the future is waited for, for 3 seconds.
func (l *Log) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	if err := q.Fields.Check(l.description.Fields); err != nil {
		return listwatch.Page{}, err
	}
	if q.Start == listwatch.At {
		if err := l.head.wait(ctx, q.Version); err != nil {
			return listwatch.Page{}, err
		}
	}
	var from position
	if q.Continue != "" {
		var err error
		if from, err = parsePosition(q.Continue); err != nil {
			return listwatch.Page{}, err
		}
	}
	snap, version, err := l.snapshotFor(q, from)
	if err != nil {
		return listwatch.Page{}, err
	}
	return page(snap, version, q, from), nil
}

// snapshotFor returns the state that q asks for and its version.
func (l *Log) snapshotFor(q listwatch.Query, from position) (*tree, listwatch.Version, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := from.Version
	if q.Start == listwatch.At && q.Match == listwatch.Exact {
		want = q.Version
	}
	now := l.now()
	if want == 0 {
		return l.state.snapshot(), now, nil
	}
	if want < l.records.floor || want > now {
		err := expired(want, l.records.floor)
		if q.Continue != "" {
			err = continueExpired(from)
		}
		return nil, 0, err
	}
	return l.stateAt(want), want, nil
}

// page reads one page of snap.
func page(snap *tree, version listwatch.Version, q listwatch.Query, from position) listwatch.Page {
	s := newSelection(q)
	p := listwatch.Page{Version: version, Remaining: -1}
	more, rest := false, 0
	count := from.Key == listwatch.Key{} && !s.selective() && q.Limit > 0
	s.ascend(snap, from.Key, func(o *listwatch.Object) bool {
		if o.Key == from.Key {
			return true
		}
		if q.Limit <= 0 || len(p.Items) < q.Limit {
			p.Items = append(p.Items, o)
			return true
		}
		more = true
		rest++
		return count
	})
	if !more {
		p.Remaining = 0
		return p
	}
	next := position{Version: version, Key: p.Items[len(p.Items)-1].Key}
	switch {
	case count:
		p.Remaining = rest
	case from.Rest > 0:
		p.Remaining = from.Rest - len(p.Items)
	}
	next.Rest = p.Remaining
	p.Continue = next.token()
	return p
}

// A position is what a continue token says: where a list goes on. Version zero means whatever the state is by then.
type position struct {
	Version listwatch.Version `json:"v,omitempty"`
	Key     listwatch.Key     `json:"k"`
	Rest    int               `json:"r,omitempty"` // objects after Key, where known
}

func (p position) token() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic("history: a position can't fail to encode: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func parsePosition(token string) (position, error) {
	var p position
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Key == (listwatch.Key{}) {
		return p, &listwatch.Error{Code: listwatch.Invalid, Message: "continue token " + token + " is not one that a list gave out", Err: err}
	}
	return p, nil
}

// continueExpired is the error of a token whose snapshot is gone. It offers a fresh one, with which the list goes on at the newest
// state: what was returned so far and what comes then are not of one version, and whoever minds lists again.
func continueExpired(from position) error {
	return &listwatch.Error{
		Code: listwatch.Expired,
		Message: "The provided continue parameter is too old to display a consistent list result. You can start a new list without the " +
			"continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with " +
			"the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the " +
			"first chunk was returned and now may show up in the list.",
		Continue: position{Key: from.Key}.token(),
	}
}
