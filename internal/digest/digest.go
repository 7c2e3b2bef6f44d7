// Package digest identifies texts by a short hash.
package digest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// Of returns a hash of the texts, which is safe in URLs. Other texts, or the same text divided in
// another way, have another hash.
func Of(texts ...string) string {
	var all []byte
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	sum := sha256.Sum256(all)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
