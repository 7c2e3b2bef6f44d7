// Package aesgcm encrypts the objects of a database with AES-256-GCM. A [Transformer] is for the
// options of store/bolt and store/etcd.
//
// Each value is encrypted with a key of its own, which is derived with HKDF-SHA256 from the secret
// key and 32 random bytes. So the number of values that one secret key may encrypt is not limited.
// A value is bound to its place in the database. If it is copied to another object, or if an old
// value replaces a newer one, it cannot be decrypted. (In etcd, an old value of the same object can
// be decrypted.) Names, versions and times are not encrypted.
//
// # Another key
//
// To replace the secret key, put the new one in front of the old one, as in New(next, current).
// With etcd, first add the new key as the last one at every server, so that all of them can read
// what the first one writes. The old key can be dropped once nothing is encrypted with it: after
// [bolt.DB.Rewrite], and with etcd when every object has been changed.
//
// [bolt.DB.Rewrite]: https://pkg.go.dev/github.com/listwatch/listwatch/store/bolt#DB.Rewrite
package aesgcm

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/listwatch/listwatch/store"
)

// KeyBytes is the length of a secret key.
const KeyBytes = 32

// A stored value is
//
//	format      1 byte: 1
//	key         4 bytes: the identifier of the secret key
//	salt        32 random bytes
//	ciphertext  with the 16 bytes of the tag
//
// The nonce is zero, because no other value is encrypted with the derived key.
const (
	format      = 1
	idBytes     = 4
	saltBytes   = 32
	headerBytes = 1 + idBytes + saltBytes
)

// A Transformer encrypts with its first key, and decrypts with any of its keys. It implements
// [store.Transformer] and is safe for concurrent use.
type Transformer struct {
	keys []key
}

var _ store.Transformer = (*Transformer)(nil)

// A key is a secret key with its identifier, which reveals nothing about it.
type key struct {
	secret []byte
	id     string
}

// New returns a Transformer that encrypts with current, and decrypts with current and with the keys
// in older. A key is KeyBytes of a good random generator, such as crypto/rand. It is an error if a
// key has another length.
func New(current []byte, older ...[]byte) (*Transformer, error) {
	t := new(Transformer)
	for _, secret := range append([][]byte{current}, older...) {
		if len(secret) != KeyBytes {
			return nil, fmt.Errorf("an AES-256 key has %d bytes; it must have %d", len(secret), KeyBytes)
		}
		id, err := hkdf.Expand(sha256.New, secret, "listwatch aesgcm id", idBytes)
		if err != nil {
			return nil, err
		}
		t.keys = append(t.keys, key{secret: append([]byte(nil), secret...), id: string(id)})
	}
	return t, nil
}

// ToStorage implements [store.Transformer].
func (t *Transformer) ToStorage(at store.Location, plain []byte) ([]byte, error) {
	k := t.keys[0]
	out := make([]byte, headerBytes, headerBytes+len(plain)+16)
	out[0] = format
	copy(out[1:], k.id)
	salt := out[1+idBytes:]
	_, _ = rand.Read(salt) // never returns an error
	aead, err := k.derive(salt)
	if err != nil {
		return nil, err
	}
	return aead.Seal(out, make([]byte, aead.NonceSize()), plain, additionalData(at)), nil
}

// FromStorage implements [store.Transformer]. It returns an error if the value was encrypted with
// another key or for another place, or if it has changed.
func (t *Transformer) FromStorage(at store.Location, stored []byte) ([]byte, error) {
	if len(stored) < headerBytes || stored[0] != format {
		return nil, errors.New("the value was not encrypted by this package")
	}
	id, salt := string(stored[1:1+idBytes]), stored[1+idBytes:headerBytes]
	for _, k := range t.keys {
		if k.id != id {
			continue
		}
		aead, err := k.derive(salt)
		if err != nil {
			return nil, err
		}
		return aead.Open(nil, make([]byte, aead.NonceSize()), stored[headerBytes:], additionalData(at))
	}
	return nil, fmt.Errorf("the value was encrypted with the key %x, which is none of the %d keys", id, len(t.keys))
}

// derive returns the cipher of one value.
func (k key) derive(salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Expand(sha256.New, k.secret, "listwatch aesgcm value "+string(salt), KeyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// additionalData returns a text that differs for all locations.
func additionalData(at store.Location) []byte {
	var data []byte
	for _, s := range [...]string{at.Collection, at.Key.Namespace, at.Key.Name} {
		data = append(binary.AppendUvarint(data, uint64(len(s))), s...)
	}
	return binary.AppendUvarint(data, uint64(at.Version))
}
