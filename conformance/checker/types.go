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

// String returns the name of e, such as "ADDED".
func (e EventType) String() string {
	if e == Synced {
		return "SYNCED"
	}
	return listwatch.EventType(e).String()
}

// MarshalText returns the name of e. An unknown type is an error.
func (e EventType) MarshalText() ([]byte, error) {
	if e < Added || e > Synced {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("unknown event type %d", e)}
	}
	return []byte(e.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *EventType) UnmarshalText(text []byte) error {
	for known := Added; known <= Synced; known++ {
		if known.String() == string(text) {
			*e = known
			return nil
		}
	}
	return &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: fmt.Sprintf("unknown event type %.20q, want ADDED, MODIFIED, DELETED, BOOKMARK or SYNCED", text),
	}
}

// A Fingerprint is a hash of an object's bytes. Zero means unknown: it is not compared. It
// marshals as sixteen hexadecimal digits.
type Fingerprint uint64

// FingerprintOf returns the first eight bytes of the SHA-256 of data. It is never zero.
func FingerprintOf(data []byte) Fingerprint {
	sum := sha256.Sum256(data)
	return Fingerprint(max(binary.BigEndian.Uint64(sum[:8]), 1))
}

// String returns f in the format of MarshalText.
func (f Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(f)) }

// MarshalText implements [encoding.TextMarshaler].
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *Fingerprint) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("fingerprint %.20q: must be 16 hexadecimal digits", text),
		}
	}
	*f = Fingerprint(v)
	return nil
}
