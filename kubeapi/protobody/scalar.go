package protobody

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// scalar writes, as JSON, a value whose JSON is not an object.
func (w *jsonWriter) scalar(s scalarType, value record) error {
	switch s {
	case scalarBool:
		w.out = strconv.AppendBool(w.out, value.varint != 0)
	case scalarInt32:
		w.out = strconv.AppendInt(w.out, int64(int32(value.varint)), 10)
	case scalarInt64:
		w.out = strconv.AppendInt(w.out, int64(value.varint), 10)
	case scalarString:
		return w.text(value.data)
	case scalarBytes:
		w.out = append(w.out, '"')
		w.out = base64.StdEncoding.AppendEncode(w.out, value.data)
		w.out = append(w.out, '"')
	case scalarTime:
		return w.time(value.data, 0, time.RFC3339)
	case scalarMicroTime:
		return w.time(value.data, time.Microsecond, "2006-01-02T15:04:05.000000Z07:00")
	default:
		return w.wrappedScalar(s, value.data)
	}
	return nil
}

var errInvalidUTF8 = errors.New("not valid UTF-8")

func checkText(s []byte) error {
	if !utf8.Valid(s) {
		return errInvalidUTF8
	}
	return nil
}

func (w *jsonWriter) text(s []byte) error {
	w.out = rawjson.AppendString(w.out, string(s))
	return checkText(s)
}

// The schemas of messages whose JSON is not an object.
var (
	timestamp   = builtin("Timestamp", field{number: 1, scalar: scalarInt64}, field{number: 2, scalar: scalarInt32})
	quantity    = builtin("Quantity", field{number: 1, scalar: scalarString})
	intOrString = builtin("IntOrString", field{number: 1, scalar: scalarInt64}, field{number: 2, scalar: scalarInt32}, field{number: 3, scalar: scalarString})
	jsonMessage = builtin("RawExtension", field{number: 1, scalar: scalarBytes})
	stringList  = builtin("ExtraValue", field{number: 1, cardinality: repeated, scalar: scalarString})
)

func builtin(name string, fields ...field) *message {
	m := &message{name: name, byNumber: map[uint64]int{}, fields: fields}
	for i, f := range fields {
		m.byNumber[f.number] = i
	}
	return m
}

// time writes a Timestamp. It rounds the fraction of a second down to a multiple of unit, or drops
// the fraction if unit is zero.
func (w *jsonWriter) time(data []byte, unit time.Duration, layout string) error {
	values, err := timestamp.values(data)
	if err != nil {
		return err
	}
	var fraction time.Duration
	if unit > 0 {
		fraction = time.Duration(int32(values[1].varint)).Truncate(unit)
	}
	t := time.Unix(int64(values[0].varint), int64(fraction)).UTC()
	switch {
	case len(data) == 0 || t.IsZero():
		w.out = append(w.out, "null"...)
		return nil
	case t.Year() < 0 || t.Year() > 9999:
		return fmt.Errorf("not a time of RFC 3339: %d seconds after 1970", int64(values[0].varint))
	}
	w.out = append(t.AppendFormat(append(w.out, '"'), layout), '"')
	return nil
}

// wrappedScalar writes a scalar that is a message on the wire.
func (w *jsonWriter) wrappedScalar(s scalarType, data []byte) error {
	switch s {
	case scalarStrings:
		return w.stringList(data)
	case scalarIntOrString:
		return w.intOrString(data)
	case scalarQuantity:
		values, err := quantity.values(data)
		if err != nil {
			return err
		}
		if len(values[0].data) == 0 {
			w.out = append(w.out, `"0"`...)
			return nil
		}
		return w.text(values[0].data)
	}
	values, err := jsonMessage.values(data)
	if err != nil {
		return err
	}
	if len(values[0].data) == 0 {
		w.out = append(w.out, "null"...)
		return nil
	}
	compact, err := rawjson.Compact(values[0].data)
	w.out = append(w.out, compact...)
	return err
}

func (w *jsonWriter) intOrString(data []byte) error {
	values, err := intOrString.values(data)
	if err != nil {
		return err
	}
	switch which := values[0].varint; which {
	case 0:
		return w.scalar(scalarInt32, values[1])
	case 1:
		return w.text(values[2].data)
	default:
		return fmt.Errorf("neither a number nor a string: %d", which)
	}
}

func (w *jsonWriter) stringList(data []byte) error {
	places, err := stringList.locate(data)
	if err != nil {
		return err
	}
	start := len(w.out)
	n, err := w.elements(&stringList.fields[0], places[0].Of(data))
	if n == 0 {
		w.out = append(w.out[:start], "null"...)
	}
	return err
}
