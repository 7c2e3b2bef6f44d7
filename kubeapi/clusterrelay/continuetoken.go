package clusterrelay

import (
	"encoding/base64"
	"encoding/json"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// A continueToken is the content of a continue token of a cache. It has the members of the API
// server's own tokens (k8s.io/apiserver/pkg/storage, continue.go), and the members of a
// [history.ContinueToken], which the API server ignores. So a client continues its list at the API
// server if it leaves the relay, or if its cache has been dropped.
type continueToken struct {
	APIVersion string `json:"v"`
	// Version is the version of the list. If it is -1, the list continues at the newest version.
	Version int64 `json:"rv"`
	// Start is the key in etcd at which the list continues, below the key of the collection.
	Start     string        `json:"start"`
	Key       listwatch.Key `json:"k"`
	Remaining int           `json:"r,omitempty"`
}

const tokenVersion = "meta.k8s.io/v1"

// forServer converts a token of a cache to a [continueToken]. namespace is the namespace in the
// path of the list. If the API server would continue with other objects than the cache, because
// the order of its keys differs there, forServer returns the token itself, which only a relay can
// read.
func forServer(token, namespace string) string {
	own, err := history.ParseContinueToken(token)
	if err != nil || !own.Bytewise {
		return token
	}
	t := continueToken{
		APIVersion: tokenVersion, Version: int64(own.Version), Start: own.Key.String() + "\x00",
		Key: own.Key, Remaining: own.Remaining,
	}
	if own.Version == 0 {
		t.Version = -1
	}
	if namespace != "" {
		t.Start = own.Key.Name + "\x00"
	}
	data, err := json.Marshal(t)
	if err != nil {
		panic("clusterrelay: encode a continue token: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// forCache is the inverse of [forServer].
func forCache(token string) string {
	t, ok := parseContinueToken(token)
	if !ok {
		return token
	}
	return history.ContinueToken{
		Version: listwatch.Version(max(t.Version, 0)), Key: t.Key, Remaining: t.Remaining, Bytewise: true,
	}.Encode()
}

// parseContinueToken returns the content of a token, unless it is in another form.
func parseContinueToken(token string) (t continueToken, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	return t, err == nil && json.Unmarshal(data, &t) == nil && t.APIVersion == tokenVersion &&
		t.Key != (listwatch.Key{})
}

// isOwnToken reports whether a continue token comes from a cache. The API server's tokens have no
// member k.
func isOwnToken(token string) bool {
	var content struct{ K json.RawMessage }
	data, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil && json.Unmarshal(data, &content) == nil && content.K != nil
}

// errDropped is the error for the rest of a list whose cache has been dropped. Clients then list
// again from the start.
func errDropped() error {
	return &listwatch.Error{
		Code: listwatch.Expired, Message: "the relay has dropped the cache of this list; list again from the start",
	}
}
