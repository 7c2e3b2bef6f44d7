package patch

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// WithStatus returns the object in old with the status of the object in next, or without a status
// if the status in next is absent or null. Both objects are compact JSON.
func WithStatus(old, next []byte) ([]byte, error) {
	if len(next) == 0 || next[0] != '{' {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be a JSON object"}
	}
	members, err := rawjson.Split(old)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the stored object is invalid", Err: err}
	}
	isStatus := func(m rawjson.Member) bool { return m.Name == "status" }
	status := rawjson.Lookup(next, "status")
	if string(status) == "null" {
		status = nil
	}
	i := slices.IndexFunc(members, isStatus)
	switch {
	case status == nil:
		members = slices.DeleteFunc(members, isStatus)
	case i >= 0:
		members[i].Value = status
	default:
		members = append(members, rawjson.Member{Name: "status", Key: []byte(`"status"`), Value: status})
	}
	return rawjson.Join(members), nil
}
