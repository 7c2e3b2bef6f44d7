package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// MaxOperations limits the operations of a JSON patch, as in kube-apiserver.
const MaxOperations = 10000

// maxWork limits the product of the number of operations and the number of values in the object,
// because one operation may move all elements of a list. A patch within the limit takes at most a
// few tenths of a second. The limit allows a hundred operations on an object of 1 MiB with values
// of 25 bytes, and thousands of operations on objects of usual size.
const maxWork = 4 << 20

// JSON parses a list of operations (RFC 6902), which is compact JSON, and returns a function that
// applies them to compact JSON. All copy operations together may copy at most maxCopy bytes.
func JSON(data []byte, maxCopy int64) (func(doc []byte) ([]byte, error), error) {
	if string(data) == "null" {
		data = []byte("[]") // as in Kubernetes
	}
	// Check the form first, because the library's errors mention its Go types.
	if data[0] != '[' {
		return nil, Invalid(errors.New("a JSON patch must be a list of operations"))
	}
	i := -1
	err := rawjson.Elements(data, func(at rawjson.Span) error {
		// As in Kubernetes, null is an operation without members.
		if i++; data[at.Start] != '{' && data[at.Start] != 'n' {
			return fmt.Errorf("operation %d is not an object", i)
		}
		return nil
	})
	if err != nil {
		return nil, Invalid(err)
	}
	// Do not use the library's DecodePatch, so that checkOperation reports invalid operations.
	var operations jsonpatch.Patch
	if err := json.Unmarshal(data, &operations); err != nil {
		return nil, Inapplicable(err)
	}
	if len(operations) > MaxOperations {
		return nil, Invalid(fmt.Errorf("it has %d operations; the limit is %d", len(operations), MaxOperations))
	}
	for i, o := range operations {
		if err := checkOperation(o); err != nil {
			return nil, Inapplicable(fmt.Errorf("operation %d: %w", i, err))
		}
		permitMissing(o)
	}
	o := jsonpatch.NewApplyOptions()
	o.EscapeHTML = false // keep strings as the client wrote them
	o.SupportNegativeIndices = false
	o.AccumulatedCopySizeLimit = maxCopy
	comma := []byte{','}
	// The number of commas in the patch approximates the number of values that it inserts. Up to
	// three commas per operation are not counted, because they separate the members of the
	// operation, or the operation from the next one.
	inserted := max(0, bytes.Count(data, comma)-3*len(operations))
	return func(doc []byte) ([]byte, error) {
		if values := inserted + bytes.Count(doc, comma); len(operations)*values > maxWork {
			return nil, Invalid(
				fmt.Errorf("%d operations are too many for an object with %d values", len(operations), values))
		}
		out, err := applyOperations(operations, doc, o)
		if err != nil {
			return nil, Inapplicable(err)
		}
		return out, nil
	}, nil
}

func applyOperations(operations jsonpatch.Patch, doc []byte, o *jsonpatch.ApplyOptions) (out []byte, err error) {
	defer func() {
		// The library panics if it compares a list element that is null with another value.
		if recover() != nil {
			err = errors.New("a test failed: a list contains null")
		}
	}()
	return operations.ApplyWithOptions(doc, o)
}

// UnknownMembers returns the paths of members that RFC 6902 does not define for an operation, such
// as [0].x. Such members have no effect.
func UnknownMembers(data []byte) (paths []string) {
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(data, &operations); err != nil {
		return nil // JSON reports the error
	}
	for i, o := range operations {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if !slices.Contains([]string{"op", "path", "from", "value"}, name) {
				paths = append(paths, fmt.Sprintf("[%d].%s", i, name))
			}
		}
	}
	return paths
}

// Inapplicable returns an error of status 422: the patch is valid but cannot be
// applied to this object.
func Inapplicable(err error) error {
	if e := listwatch.AsError(err); e.Message != "" {
		err = errors.New(e.Message) // omits the code
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: "the patch cannot be applied to the object: " + err.Error(),
	}
}

// InvalidResult returns an error of status 422 with err as its cause: the object would not be valid
// after the patch.
func InvalidResult(err error) error {
	e := listwatch.AsError(Inapplicable(err))
	e.Details = &listwatch.Details{
		Causes: []listwatch.Cause{{Reason: listwatch.CauseInvalid, Field: "patch", Message: e.Error()}},
	}
	return e
}

// permitMissing makes a replace operation on a missing member of an object add the member, as in
// Kubernetes. Elements of lists must exist.
func permitMissing(o jsonpatch.Operation) {
	if o.Kind() != "replace" {
		return
	}
	pointer, _ := rawjson.String(*o["path"])
	last := pointer[strings.LastIndexByte(pointer, '/')+1:]
	if _, err := strconv.Atoi(last); err == nil || last == "-" || pointer == "" {
		return // may be an element of a list, or is the whole object
	}
	add := json.RawMessage(`"add"`)
	o["op"] = &add
}

// checkOperation rejects operations that the library would misinterpret, and paths that are
// too deep. It adds missing values.
func checkOperation(o jsonpatch.Operation) error {
	pointers := []string{"path"}
	switch o.Kind() {
	case "add", "replace", "test":
		if _, ok := o["value"]; !ok { // as in Kubernetes, a missing value means null
			null := json.RawMessage("null")
			o["value"] = &null
		}
	case "remove":
	case "move", "copy":
		pointers = append(pointers, "from")
	default:
		if o["op"] == nil {
			return errors.New("it has no op")
		}
		return fmt.Errorf("op is %q, must be add, remove, replace, move, copy or test", o.Kind())
	}
	for _, name := range pointers {
		if o[name] == nil {
			return fmt.Errorf("it has no %s", name)
		}
		pointer, err := rawjson.String(*o[name])
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case pointer == "":
			if err := checkWholeObject(o); err != nil {
				return err
			}
		case pointer[0] != '/':
			return fmt.Errorf("%s is %q, must be a JSON pointer that starts with a slash", name, pointer)
		case strings.Count(pointer, "/") > maxDepth:
			return fmt.Errorf("%s is deeper than %d levels", name, maxDepth)
		}
	}
	return nil
}

// checkWholeObject checks an operation whose path is the whole object. It returns an error unless
// the operation compares the object or replaces it with another object.
func checkWholeObject(o jsonpatch.Operation) error {
	switch value := o["value"]; {
	case o.Kind() == "test":
		return nil
	case o.Kind() != "replace":
		return fmt.Errorf("only replace and test can be applied to the whole object, not %s", o.Kind())
	case value == nil || (*value)[0] != '{':
		return errors.New("the whole object can only be replaced by an object")
	}
	return nil
}
