// Package patch applies JSON merge patches and JSON patches to the bytes of objects.
package patch

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// Merge is like [rawjson.Merge], with an error for the client.
func Merge(doc, patch []byte) ([]byte, error) {
	merged, err := rawjson.Merge(doc, patch)
	if err != nil {
		return nil, Invalid(err)
	}
	return merged, nil
}

// maxDepth limits the depth of the path of a JSON patch.
const maxDepth = 128

// Invalid returns an error of status 400: the patch itself is wrong.
func Invalid(err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the patch is invalid: " + err.Error()}
}
