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
