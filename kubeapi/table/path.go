package table

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// A cellPath is a parsed JSON path.
type cellPath struct {
	names []string // the names of members at the start of the path
	rest  string   // the rest of the path, which Kubernetes' own code follows
}

// memberSyntax matches the members at the start of a path whose names need no quotes.
var memberSyntax = regexp.MustCompile(`^(\.[A-Za-z0-9_-]+)*`)

// parsePath parses a path in the syntax of kubectl, which starts with a dot or a bracket.
func parsePath(text string) (cellPath, error) {
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") {
		return cellPath{}, fmt.Errorf("JSON path %q: must start with a dot, as .spec.replicas does", text)
	}
	if _, err := parseLibrary(text); err != nil {
		return cellPath{}, fmt.Errorf("JSON path %q: %w", text, err)
	}
	members := memberSyntax.FindString(text)
	if rest := text[len(members):]; rest != "" && rest[0] != '[' {
		return cellPath{rest: text}, nil // the last name continues, or no name follows a dot
	} else if members == "" {
		return cellPath{rest: rest}, nil
	} else {
		return cellPath{strings.Split(members[1:], "."), rest}, nil
	}
}

// parseLibrary returns the parsed path. The result must be used only once, because it has state.
func parseLibrary(path string) (*jsonpath.JSONPath, error) {
	j := jsonpath.New("column").AllowMissingKeys(true)
	return j, j.Parse("{" + path + "}")
}

// find returns the first value that p.rest matches in raw, which is the value at p.names. ok is
// false if there is none.
func (p cellPath) find(raw jsonvalue.Value) (value any, ok bool) {
	if len(raw) == 0 || utiljson.Unmarshal(raw, &value) != nil {
		return nil, false
	}
	if p.rest == "" {
		return value, true
	}
	defer func() {
		// The library uses reflection on whatever the path leads to.
		if recover() != nil {
			value, ok = nil, false
		}
	}()
	j, err := parseLibrary(p.rest)
	if err != nil {
		return nil, false
	}
	results, err := j.FindResults(value)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, false
	}
	return results[0][0].Interface(), true
}

// printed returns value as kubectl prints it.
func printed(value any) string {
	var b bytes.Buffer
	if err := jsonpath.New("column").PrintResults(&b, []reflect.Value{reflect.ValueOf(value)}); err != nil {
		return ""
	}
	return b.String()
}

// convert converts value to the type of a column: integer, number or boolean. It returns nil if the
// value has another type.
func convert(value any, kind string) any {
	switch value := value.(type) {
	case int64:
		if kind == "integer" || kind == "number" {
			return value
		}
	case float64:
		switch kind {
		case "integer":
			return int64(value)
		case "number":
			return value
		}
	case bool:
		if kind == "boolean" {
			return value
		}
	}
	return nil
}
