package checker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// A Key is a listwatch.Key that marshals as "namespace/name", or as the name if it has no
// namespace.
type Key listwatch.Key

// String returns k in the format of MarshalText.
func (k Key) String() string { return listwatch.Key(k).String() }

func (k Key) compare(o Key) int { return listwatch.Key(k).Compare(listwatch.Key(o)) }

// MarshalText implements [encoding.TextMarshaler].
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Key) UnmarshalText(text []byte) error {
	namespace, name, ok := strings.Cut(string(text), "/")
	if !ok {
		namespace, name = "", namespace
	}
	*k = Key{Namespace: namespace, Name: name}
	return nil
}

// An EventType is the type of an event. Unlike on the wire, the bookmark that ends the
// initial events has its own type, SYNCED.
type EventType listwatch.EventType

// The event types.
const (
	Added    = EventType(listwatch.Added)
	Modified = EventType(listwatch.Modified)
	Deleted  = EventType(listwatch.Deleted)
	Bookmark = EventType(listwatch.Bookmark)
	Synced   = EventType(listwatch.Synced)
)

// String returns the name of t, such as "ADDED".
func (t EventType) String() string {
	if t == Synced {
		return "SYNCED"
	}
	return listwatch.EventType(t).String()
}

// MarshalText returns the name of t. An unknown type is an error.
func (t EventType) MarshalText() ([]byte, error) {
	if t < Added || t > Synced {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("unknown event type %d", t)}
	}
	return []byte(t.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *EventType) UnmarshalText(text []byte) error {
	for known := Added; known <= Synced; known++ {
		if known.String() == string(text) {
			*t = known
			return nil
		}
	}
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("unknown event type %.20q, want ADDED, MODIFIED, DELETED, BOOKMARK or SYNCED", text)}
}

// A Fingerprint is a hash of an object's bytes. Zero means unknown: it is not compared. It
// marshals as sixteen hexadecimal digits.
type Fingerprint uint64

// FingerprintOf returns the first eight bytes of the SHA-256 of data. It is never zero.
func FingerprintOf(data []byte) Fingerprint {
	sum := sha256.Sum256(data)
	return Fingerprint(max(binary.BigEndian.Uint64(sum[:8]), 1))
}

// String returns p in the format of MarshalText.
func (p Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(p)) }

// MarshalText implements [encoding.TextMarshaler].
func (p Fingerprint) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Fingerprint) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("fingerprint %.20q: must be 16 hexadecimal digits", text)}
	}
	*p = Fingerprint(v)
	return nil
}
