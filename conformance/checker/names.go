package checker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// A Key is a listwatch.Key that files spell "namespace/name", or the name alone.
type Key listwatch.Key

// String returns k as files spell it.
func (k Key) String() string { return listwatch.Key(k).String() }

func (k Key) compare(o Key) int { return listwatch.Key(k).Compare(listwatch.Key(o)) }

// MarshalText is String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Key) UnmarshalText(text []byte) error {
	namespace, name, ok := strings.Cut(string(text), "/")
	if !ok {
		namespace, name = "", namespace
	}
	*k = Key{Namespace: namespace, Name: name}
	return nil
}

// A Type is that of an event. Unlike on the wire, the bookmark that ends the initial events has a name of its own, SYNCED.
type EventType listwatch.EventType

// The types of frames.
const (
	Added    = EventType(listwatch.Added)
	Modified = EventType(listwatch.Modified)
	Deleted  = EventType(listwatch.Deleted)
	Bookmark = EventType(listwatch.Bookmark)
	Synced   = EventType(listwatch.Synced)
)

// String returns the name of t.
func (t EventType) String() string {
	if t == Synced {
		return "SYNCED"
	}
	return listwatch.EventType(t).String()
}

// MarshalText is String; a type that has no name is an error.
func (t EventType) MarshalText() ([]byte, error) {
	if t < Added || t > Synced {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("there is no event type %d", t)}
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (t *EventType) UnmarshalText(text []byte) error {
	for known := Added; known <= Synced; known++ {
		if known.String() == string(text) {
			*t = known
			return nil
		}
	}
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("there is no event type %.20q", text)}
}

// A Payload is a fingerprint of an object's bytes; zero: not known, and then not compared. Files spell it in sixteen hexadecimal digits.
type Fingerprint uint64

// Sum returns the fingerprint of data: eight bytes of its SHA-256. It is never zero.
func FingerprintOf(data []byte) Fingerprint {
	sum := sha256.Sum256(data)
	return Fingerprint(max(binary.BigEndian.Uint64(sum[:8]), 1))
}

// String returns p as files spell it.
func (p Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(p)) }

// MarshalText is String.
func (p Fingerprint) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *Fingerprint) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("payload %.20q, want 16 hexadecimal digits", text)}
	}
	*p = Fingerprint(v)
	return nil
}
