package mutants

import (
	"encoding/binary"
	"fmt"

	"github.com/listwatch/listwatch"
)

// Bits and opcodes in the first byte of a WebSocket frame (RFC 6455, section 5.2).
const (
	bitFinal byte = 0x80
	opText   byte = 1
	opBinary byte = 2
	opClose  byte = 8
	opPong   byte = 10
)

// splitFrame splits a WebSocket frame into its header, which includes the mask, and its
// payload, which stays masked.
func splitFrame(frame []byte) (head, payload []byte, ok bool) {
	if len(frame) < 2 {
		return nil, nil, false
	}
	n := 2 + map[byte]int{126: 2, 127: 8}[frame[1]&^0x80]
	if frame[1]&0x80 != 0 {
		n += 4
	}
	if len(frame) < n {
		return nil, nil, false
	}
	return frame[:n], frame[n:], true
}

// joinFrame returns an unmasked frame.
func joinFrame(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// synced returns the bookmark that ends the initial events.
func synced(v listwatch.Version) listwatch.Event {
	d := listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}
	return listwatch.NewSynced(d, listwatch.State{Version: v}, 0)
}

// unwrittenEvent returns a change of an object that was never written.
func unwrittenEvent(v listwatch.Version) listwatch.Event {
	data := fmt.Sprintf(
		`{"kind":"Thing","apiVersion":"conformance.example.com/v1","metadata":{"name":"ghost","resourceVersion":%q}}`,
		v.String())
	key := listwatch.Key{Namespace: "default", Name: "ghost"}
	return listwatch.Event{
		Type: listwatch.Modified, Version: v, Object: &listwatch.Object{Key: key, Version: v, Data: []byte(data)},
	}
}
