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
		if err := l.head.Wait(ctx, q.Version); err != nil {
			return listwatch.Page{}, err
		}
	}
	var from ContinueToken
	if q.Continue != "" {
		var err error
		if from, err = ParseContinueToken(q.Continue); err != nil {
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
func (l *Log) snapshotFor(q listwatch.Query, from ContinueToken) (*tree, listwatch.Version, error) {
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
		if q.Continue != "" {
			return nil, 0, continueExpired(from)
		}
		return nil, 0, listExpired()
	}
	return l.stateAt(want), want, nil
}

// page reads one page of snap. One that is full has a continue token where anything of the scope comes after it, selected or not, as in
// Kubernetes: to look for the next match could read the rest of a collection for a page that is complete.
func page(snap *tree, version listwatch.Version, q listwatch.Query, from ContinueToken) listwatch.Page {
	s := newSelection(q)
	p := listwatch.Page{Version: version, Remaining: -1}
	more, rest := false, 0
	count := q.Limit > 0 && !s.selective() && from.Remaining <= 0
	if count && s.namespace == "" && from.Key == (listwatch.Key{}) {
		// The first page of everything: who only wants to know the version should not pay for the collection.
		count, from.Remaining = false, snap.Len()
	}
	s.scan(snap, from.Key, func(o *listwatch.Object) bool {
		switch {
		case o.Key == from.Key:
		case q.Limit > 0 && len(p.Items) == q.Limit:
			more = true
			rest++
			return count
		case s.matches(o):
			p.Items = append(p.Items, o)
		}
		return true
	})
	if !more {
		p.Remaining = 0
		return p
	}
	next := ContinueToken{Version: version, Key: p.Items[len(p.Items)-1].Key}
	switch {
	case count:
		p.Remaining = rest
	case from.Remaining > 0:
		p.Remaining = from.Remaining - len(p.Items)
	}
	next.Remaining = p.Remaining
	p.Continue = next.Encode()
	return p
}

// A Position is what a continue token says: where a list goes on.
type ContinueToken struct {
	// Version is that of the state; zero: whatever it is by then.
	Version listwatch.Version `json:"v,omitempty"`
	// Key is the last one that was returned; there need not be an object of it.
	Key listwatch.Key `json:"k"`
	// Rest is how many objects come after Key; zero or negative: not known.
	Remaining int `json:"r,omitempty"`
}

// Token spells p.
func (p ContinueToken) Encode() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic("history: a position can't fail to encode: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParsePosition reads a token. What is none is an error of code [listwatch.Invalid].
func ParseContinueToken(token string) (ContinueToken, error) {
	var p ContinueToken
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
func continueExpired(from ContinueToken) error {
	return &listwatch.Error{
		Code: listwatch.Expired,
		Message: "The provided continue parameter is too old to display a consistent list result. You can start a new list without the " +
			"continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with " +
			"the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the " +
			"first chunk was returned and now may show up in the list.",
		Continue: ContinueToken{Key: from.Key}.Encode(),
	}
}
