package postgres

import (
	"bytes"
	"errors"
	"fmt"
)

// The messages of the logical replication protocol, version 1, in the output of the plugin
// pgoutput (PostgreSQL documentation, "Logical Replication Message Formats").
type (
	// A begin starts a transaction.
	begin struct{}
	// A commit ends a transaction. end is the LSN after its commit record.
	commit struct{ commit, end lsn }
	// A relation describes a table before its first change, and again after its columns changed.
	relation struct {
		oid             uint32
		namespace, name string
		identity        byte // as in pg_class.relreplident
		columns         []relationColumn
	}
	relationColumn struct {
		name       string
		oid        uint32 // of the type
		isIdentity bool   // always true if the identity is FULL
	}
	// A change is one changed row. An insert has no old tuple, and a delete no new one. An update
	// has an old tuple only if it changed the identity of the row, or if the identity is FULL.
	change struct {
		relation uint32
		old, new tuple
	}
	truncate struct{ relations []uint32 }
)

// A tuple holds the values of a row in the order of the columns.
type tuple []value

// restore takes the values that an update left as they were from the row before the update.
func (t tuple) restore(before tuple) {
	for i := range t {
		if t[i].kind == isUnchanged {
			t[i] = before[i]
		}
	}
}

// A value is the text of a value, as the type's output function writes it.
type value struct {
	text []byte // valid until the next message is read, unless it was cloned
	kind byte   // isText, isNull or isUnchanged
}

const (
	isText      = 't'
	isNull      = 'n'
	isUnchanged = 'u' // stored outside of its row, and not changed by the update
)

var errShortMessage = errors.New("the message is too short")

// A decoder reads the fields of a message. After an error it returns zero values.
type decoder struct {
	rest []byte
	err  error
}

// parseMessage parses a message of pgoutput. It returns nil for a message that has no meaning for
// the rows of a table. The result refers to data.
func parseMessage(data []byte) (message any, err error) {
	d := decoder{rest: data}
	kind := d.byte()
	switch kind {
	case 'B':
		d.bytes(8 + 8 + 4) // the LSN and the time of the commit, and the id of the transaction
		message = begin{}
	case 'C':
		d.byte() // flags, which are not used
		message = commit{commit: d.lsn(), end: d.lsn()}
	case 'R':
		message = d.relation()
	case 'I', 'U', 'D':
		message, err = d.change(kind)
	case 'T':
		message = d.truncate()
	case 'O', 'Y', 'M': // the origin of a transaction, a type, a message of an application
	default:
		return nil, fmt.Errorf("unknown message %q", kind)
	}
	if err == nil {
		err = d.err
	}
	if err != nil {
		return nil, fmt.Errorf("message %q: %w", kind, err)
	}
	return message, nil
}

func (d *decoder) relation() relation {
	r := relation{oid: d.uint32(), namespace: d.string(), name: d.string(), identity: d.byte()}
	for range d.uint16() {
		r.columns = append(r.columns, relationColumn{isIdentity: d.byte() == 1, name: d.string(), oid: d.uint32()})
		d.uint32() // the modifier of the type
		if d.err != nil {
			break
		}
	}
	return r
}

func (d *decoder) change(kind byte) (change, error) {
	c := change{relation: d.uint32()}
	for len(d.rest) > 0 && d.err == nil {
		switch which := d.byte(); which {
		case 'K', 'O':
			c.old = d.tuple()
		case 'N':
			c.new = d.tuple()
		default:
			return c, fmt.Errorf("unknown tuple %q", which)
		}
	}
	if d.err == nil && (c.new == nil) != (kind == 'D') || kind == 'D' && c.old == nil {
		return c, errShortMessage
	}
	return c, nil
}

func (d *decoder) tuple() tuple {
	n := int(d.uint16())
	if n > len(d.rest) { // each value has at least one byte
		d.err = errShortMessage
		return nil
	}
	t := make(tuple, n)
	for i := range t {
		t[i].kind = d.byte()
		switch t[i].kind {
		case isNull, isUnchanged:
		case isText:
			t[i].text = d.bytes(int(d.uint32()))
		default:
			if d.err == nil {
				d.err = fmt.Errorf("unknown value %q", t[i].kind)
			}
			return nil
		}
	}
	return t
}

func (d *decoder) truncate() truncate {
	n := d.uint32()
	d.byte() // the options CASCADE and RESTART IDENTITY, which are not needed
	var t truncate
	for range n {
		t.relations = append(t.relations, d.uint32())
		if d.err != nil {
			break
		}
	}
	return t
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.rest, d.err = nil, errShortMessage
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// uint reads an integer of n bytes.
func (d *decoder) uint(n int) (v uint64) {
	for _, b := range d.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (d *decoder) byte() byte     { return byte(d.uint(1)) }
func (d *decoder) uint16() uint16 { return uint16(d.uint(2)) }
func (d *decoder) uint32() uint32 { return uint32(d.uint(4)) }
func (d *decoder) lsn() lsn       { return lsn(d.uint(8)) }

// string reads a text that ends with a zero byte.
func (d *decoder) string() string {
	text := d.bytes(bytes.IndexByte(d.rest, 0) + 1)
	if len(text) == 0 {
		d.rest, d.err = nil, errShortMessage
		return ""
	}
	return string(text[:len(text)-1])
}
