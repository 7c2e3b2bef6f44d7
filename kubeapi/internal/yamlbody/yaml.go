// Package yamlbody converts request bodies from YAML to JSON.
package yamlbody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/listwatch/listwatch"
)

// maxDepth limits the nesting of YAML. Kubernetes objects are not nested that deeply.
const maxDepth = 256

// decoders limits the number of decoders that run at once, because each needs more than a hundred
// times as much memory as its input.
var decoders = make(chan struct{}, 2)

// Limits are the limits of ToJSON in bytes. Zero or a negative value means no limit.
type Limits struct {
	JSON int64 // the maximum size of the resulting JSON, roughly
	YAML int64 // the maximum size of a body that is not JSON, because a YAML parser is expensive
}

// ErrTooLarge means that a body that is not JSON exceeds Limits.YAML.
var ErrTooLarge = errors.New("yamlbody: the body is too large")

// ToJSON converts data, which must contain a single document, to JSON. It returns JSON unchanged,
// because JSON is YAML. While two other calls decode YAML, ToJSON waits until one of them returns
// or ctx ends.
//
// Names keep their order. Numbers that are valid JSON are copied literally, so that large numbers
// keep all digits. Duplicate names remain in the JSON. Invalid YAML is an error of code Invalid.
func ToJSON(ctx context.Context, data []byte, l Limits) ([]byte, error) {
	if json.Valid(data) {
		return data, nil
	}
	if l.YAML > 0 && int64(len(data)) > l.YAML {
		return nil, ErrTooLarge
	}
	select {
	case decoders <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-decoders }()
	return decode(data, l.JSON)
}

func decode(data []byte, limit int64) ([]byte, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := in.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, invalid(errors.New("the body has no content"))
	case err != nil:
		return nil, invalid(err)
	}
	for {
		var more yaml.Node
		err := in.Decode(&more)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, invalid(err)
		}
		if !isEmpty(&more) { // files often end with "---"
			return nil, invalid(errors.New("the body must contain one document"))
		}
	}
	w := writer{limit: limit}
	if err := w.value(&document, 0); err != nil {
		return nil, invalid(err)
	}
	return w.out, nil
}

func isEmpty(document *yaml.Node) bool {
	root := document.Content[0]
	return root.Kind == yaml.ScalarNode && root.Value == "" && root.ShortTag() == "!!null"
}

func invalid(err error) error {
	return &listwatch.Error{
		Code: listwatch.Invalid, Message: "the object must be YAML that can be converted to JSON: " + err.Error(),
	}
}

// A writer writes YAML nodes as JSON. Its limit also stops aliases that expand
// exponentially.
type writer struct {
	out   []byte
	limit int64
}

func (w *writer) value(n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: nested deeper than %d levels", n.Line, maxDepth)
	}
	if w.limit > 0 && int64(len(w.out)) > w.limit {
		return fmt.Errorf("line %d: more than %d bytes of JSON", n.Line, w.limit)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.value(n.Content[0], depth+1)
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		return w.sequence(n, depth)
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	return fmt.Errorf("line %d: unknown kind of node", n.Line)
}

func (w *writer) sequence(n *yaml.Node, depth int) error {
	w.out = append(w.out, '[')
	for i, element := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(element, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	w.out = append(w.out, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Kind == yaml.AliasNode {
			name = name.Alias
		}
		if name.Tag == "!!merge" {
			return fmt.Errorf("line %d: merge keys (<<) are not supported; write out the members", name.Line)
		}
		if name.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a name must be a string", name.Line)
		}
		if i > 0 {
			w.out = append(w.out, ',')
		}
		// In JSON all names are strings, so 1, true and null become strings as well.
		if err := w.text(name.Value); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *writer) scalar(n *yaml.Node) error {
	// Check for numbers before tags, because the library treats a number beyond float64 as
	// a string. The style is non-zero if the node has quotes or a tag.
	if n.Style == 0 && isNumber(n.Value) {
		w.out = append(w.out, n.Value...)
		return nil
	}
	switch n.ShortTag() {
	case "!!null":
		w.out = append(w.out, "null"...)
		return nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return err
		}
		w.out = strconv.AppendBool(w.out, b)
		return nil
	case "!!int", "!!float":
		return w.number(n)
	case "!!str", "!!timestamp": // JSON has no type for times
		return w.text(n.Value)
	}
	return fmt.Errorf("line %d: a %s cannot be converted to JSON", n.Line, n.ShortTag())
}

// isNumber reports whether s is a number in JSON.
func isNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9' && json.Valid([]byte(s))
}

// number writes a number that is not valid JSON, such as 0x10 or 1_000.
func (w *writer) number(n *yaml.Node) error {
	var value any
	if err := n.Decode(&value); err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d: number %s cannot be converted to JSON", n.Line, n.Value)
	}
	w.out = append(w.out, raw...)
	return nil
}

// text writes a string without escaping characters for HTML.
func (w *writer) text(s string) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	w.out = append(w.out, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
	return nil
}
