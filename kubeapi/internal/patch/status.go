package patch

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// WithStatus returns object, which is compact JSON, with the given status, or without a status if
// it is nil or null.
func WithStatus(object, status []byte) ([]byte, error) {
	members, err := rawjson.Split(object)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the stored object is invalid", Err: err}
	}
	isStatus := func(m rawjson.Member) bool { return m.Name == "status" }
	i := slices.IndexFunc(members, isStatus)
	switch {
	case status == nil, string(status) == "null":
		members = slices.DeleteFunc(members, isStatus)
	case i >= 0:
		members[i].Value = status
	default:
		members = append(members, rawjson.Member{Name: "status", Key: []byte(`"status"`), Value: status})
	}
	return rawjson.Join(members), nil
}
