package storage

import (
	"strings"

	kube "k8s.io/apiserver/pkg/storage"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// keyOf parses a path, which consists of a prefix, an optional namespace and a name.
func (c *coder) keyOf(path string) (listwatch.Key, error) {
	prepared, err := kube.PrepareKey(c.Prefix, path, false)
	if err != nil {
		return listwatch.Key{}, err
	}
	return c.split(prepared), nil
}

func (c *coder) split(path string) listwatch.Key {
	rest := strings.TrimPrefix(path, c.Prefix)
	if i := strings.LastIndexByte(rest, '/'); i >= 0 {
		return listwatch.Key{Namespace: rest[:i], Name: rest[i+1:]}
	}
	return listwatch.Key{Name: rest}
}

// path returns the path of a key.
func (c *coder) path(k listwatch.Key) string { return c.Prefix + k.String() }

// setScope limits q to the object at path or, if recursive is true, to the objects below
// it. It returns the complete path.
func (c *coder) setScope(q *listwatch.Query, path string, recursive bool) (string, error) {
	prepared, err := kube.PrepareKey(c.Prefix, path, recursive)
	if err != nil {
		return "", err
	}
	if recursive {
		// A path below an object, such as NAMESPACE/NAME/, becomes a namespace with a slash in
		// its name. No object has such a namespace, so the list is empty, as it must be.
		q.Namespace = strings.TrimSuffix(strings.TrimPrefix(prepared, c.Prefix), "/")
		return prepared, nil
	}
	key := c.split(prepared)
	q.Namespace, q.Name = key.Namespace, key.Name
	// An empty name in a query means any name. In a path it means the empty name.
	if key.Namespace == "" {
		q.Fields = q.Fields.And(listwatch.FieldEquals(listwatch.FieldNamespace, ""))
	}
	if key.Name == "" {
		q.Fields = q.Fields.And(listwatch.FieldEquals(listwatch.FieldName, ""))
	}
	return prepared, nil
}

// A continue token of Kubernetes contains the first key of the next page. Our token contains
// the last key of the previous page.

// continueToken returns our token for the next page of a list. The page begins with the first key
// at or after the path in start. It shows the state at the given version, or the current state if
// that version is not positive.
func (c *coder) continueToken(start string, version int64) string {
	start, after := strings.CutSuffix(start, "\x00")
	p := history.ContinueToken{Key: c.split(start), Version: listwatch.Version(max(version, 0))}
	if !after {
		p.Key.Name = beforeName(p.Key.Name)
	}
	return p.Encode()
}

// beforeName returns a text that sorts before name, but after all valid names that sort before
// name. The text ends with a tilde, so it is not a valid name itself.
func beforeName(name string) string {
	if name == "" {
		return ""
	}
	last := len(name) - 1
	return name[:last] + string(rune(name[last]-1)) + "~"
}

// kubeToken converts our continue token to Kubernetes' format, for a list below prefix.
func (c *coder) kubeToken(token, prefix string) (string, error) {
	if token == "" {
		return "", nil
	}
	p, err := history.ParseContinueToken(token)
	if err != nil {
		return "", err
	}
	version := int64(p.Version)
	if version == 0 {
		version = -1
	}
	return kube.EncodeContinue(c.path(p.Key)+"\x00", prefix, version)
}
