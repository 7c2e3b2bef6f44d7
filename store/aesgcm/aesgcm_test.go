package aesgcm_test

import (
	"bytes"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/aesgcm"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, aesgcm.KeyBytes) }

func newTransformer(t *testing.T, current []byte, older ...[]byte) *aesgcm.Transformer {
	t.Helper()
	transformer, err := aesgcm.New(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return transformer
}

var place = store.Location{Collection: "secrets", Key: listwatch.Key{Namespace: "n", Name: "a"}, Version: 7}

func TestAnyKeyOfTheListDecrypts(t *testing.T) {
	plain := []byte(`{"password":"swordfish"}`)
	before := newTransformer(t, key(1))
	stored, err := before.ToStorage(place, plain)
	if err != nil {
		t.Fatal(err)
	}
	again, err := before.ToStorage(place, plain)
	if err != nil || bytes.Equal(stored, again) || bytes.Contains(stored, []byte("swordfish")) {
		t.Errorf("got %x and %x, %v, want two different ciphertexts", stored, again, err)
	}
	rotated := newTransformer(t, key(2), key(1))
	if got, err := rotated.FromStorage(place, stored); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("with the old key as the second: got %s, %v", got, err)
	}
	if stored, err = rotated.ToStorage(place, plain); err != nil {
		t.Fatal(err)
	}
	if _, err := before.FromStorage(place, stored); err == nil {
		t.Error("the old key decrypts what was encrypted with the new one")
	}
	if got, err := newTransformer(t, key(2)).FromStorage(place, stored); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("with the new key alone: got %s, %v", got, err)
	}
}

func TestAChangedOrMovedValueIsRejected(t *testing.T) {
	transformer := newTransformer(t, key(1))
	stored, err := transformer.ToStorage(place, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range stored {
		changed := bytes.Clone(stored)
		changed[i] ^= 1
		if plain, err := transformer.FromStorage(place, changed); err == nil {
			t.Errorf("byte %d changed: got %q, want an error", i, plain)
		}
		if plain, err := transformer.FromStorage(place, stored[:i]); err == nil {
			t.Errorf("cut after %d bytes: got %q, want an error", i, plain)
		}
	}
	for _, other := range []store.Location{
		{Collection: "secret", Key: listwatch.Key{Namespace: "sn", Name: "a"}, Version: 7},
		{Collection: "secrets", Key: listwatch.Key{Namespace: "", Name: "na"}, Version: 7},
		{Collection: "secrets", Key: listwatch.Key{Namespace: "n", Name: "a"}, Version: 8},
	} {
		if plain, err := transformer.FromStorage(other, stored); err == nil {
			t.Errorf("%v: got %q, want an error", other, plain)
		}
	}
}

func TestKeysHave32Bytes(t *testing.T) {
	for _, keys := range [][][]byte{{nil}, {key(1)[:16]}, {key(1), key(2)[:31]}} {
		if _, err := aesgcm.New(keys[0], keys[1:]...); err == nil {
			t.Errorf("%x: got no error", keys)
		}
	}
}
