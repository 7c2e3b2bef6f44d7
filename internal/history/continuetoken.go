package history

import (
	"encoding/base64"
	"encoding/json"

	"github.com/listwatch/listwatch"
)

// A ContinueToken is the content of the continue token of a list.
type ContinueToken struct {
	// Version is the version of the list. If zero, the list continues at the newest version.
	Version listwatch.Version `json:"v,omitempty"`
	// Key is the key of the last object returned. The object may have been deleted since.
	Key listwatch.Key `json:"k"`
	// Remaining is the number of objects after Key. It is unknown if zero or negative.
	Remaining int `json:"r,omitempty"`
	// Bytewise is true if the same objects follow Key in the order of etcd, which compares the
	// bytes of "namespace/name". That order differs from [listwatch.Key.Compare] where one
	// namespace extends the name of another, as in prod and prod-eu, because "-" sorts before "/".
	Bytewise bool `json:"b,omitempty"`
}

// Encode returns t as text, for [listwatch.Page.Continue].
func (t ContinueToken) Encode() string {
	data, err := json.Marshal(t)
	if err != nil {
		panic("history: encode a continue token: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParseContinueToken is the inverse of [ContinueToken.Encode]. Other text is an error of code
// [listwatch.Invalid].
func ParseContinueToken(token string) (ContinueToken, error) {
	var t ContinueToken
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil || t.Key == (listwatch.Key{}) {
		return t, &listwatch.Error{
			Code: listwatch.Invalid, Message: "continue token " + token + ": must come from an earlier list",
		}
	}
	return t, nil
}
