package slicesource

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/listwatch/listwatch"
)

// versionTimeout is the time that a list or a watch waits for a future version.
const versionTimeout = 3 * time.Second

// A token is the content of a continue token. The zero token continues from the start.
type token struct {
	Version listwatch.Version // the version of the list; zero for the newest
	Key     listwatch.Key     // the last key of the previous page
}

func (t token) String() string {
	data, _ := json.Marshal(t) // a token contains only numbers and strings, so there is no error
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(text string) (t token, err error) {
	if text == "" {
		return token{}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		err = &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("continue token %q: must come from an earlier list", text),
			Err: err,
		}
	}
	return t, err
}

// page returns the page of the objects whose keys come after the key of from.
func page(objects []*listwatch.Object, v listwatch.Version, limit int, from token) listwatch.Page {
	objects = objects[sort.Search(len(objects), func(i int) bool { return objects[i].Key.Compare(from.Key) > 0 }):]
	p := listwatch.Page{Items: objects, Version: v}
	if limit > 0 && limit < len(objects) {
		p.Items, p.Remaining = objects[:limit], len(objects)-limit
		p.Continue = token{v, objects[limit-1].Key}.String()
	}
	return p
}

// expiredList returns the error for a list at version v, which is before floor. If the request had
// a continue token, the error contains another token, with which the list continues at the newest
// version.
func expiredList(v, floor listwatch.Version, from token) error {
	e := expired(v, floor)
	if from.Version > 0 {
		e.Continue = token{Key: from.Key}.String()
	}
	return e
}

func expired(v, floor listwatch.Version) *listwatch.Error {
	return &listwatch.Error{
		Code:    listwatch.Expired,
		Message: fmt.Sprintf("too old resource version: %d, the oldest is %d: list again", v, floor),
	}
}

func notYet(v, newest listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.NotYet,
		Message: fmt.Sprintf("too large resource version: %d, the newest is %d: wait", v, newest),
		Details: &listwatch.Details{
			Causes:     []listwatch.Cause{{Reason: listwatch.CauseTooLarge, Message: "too large resource version"}},
			RetryAfter: time.Second,
		},
	}
}
