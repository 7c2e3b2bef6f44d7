package storage

import (
	"strings"

	kube "k8s.io/apiserver/pkg/storage"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// keyOf reads a path: a prefix, a namespace, which may be left out, and a name.
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

// path spells a key.
func (c *coder) path(k listwatch.Key) string { return c.Prefix + k.String() }

// scope narrows q to what is at path or, where recursive, beneath it, and returns the path in full.
func (c *coder) scope(q *listwatch.Query, path string, recursive bool) (string, error) {
	prepared, err := kube.PrepareKey(c.Prefix, path, recursive)
	if err != nil {
		return "", err
	}
	if recursive {
		// Beneath an object there is nothing, and so there is in a namespace with a slash.
		q.Namespace = strings.TrimSuffix(strings.TrimPrefix(prepared, c.Prefix), "/")
		return prepared, nil
	}
	key := c.split(prepared)
	q.Namespace, q.Name = key.Namespace, key.Name
	// To a query an empty name means all names, to a path it means the empty one.
	if key.Namespace == "" {
		q.Fields = q.Fields.And(listwatch.FieldNamespace, "")
	}
	if key.Name == "" {
		q.Fields = q.Fields.And(listwatch.FieldName, "")
	}
	return prepared, nil
}

// The tokens of Kubernetes say from which key on a list continues, and at which version; ours say after which.

// token makes one of ours: for what comes from start on, at version, or now where that is not positive.
func (c *coder) token(start string, version int64) string {
	start, after := strings.CutSuffix(start, "\x00")
	p := history.ContinueToken{Key: c.split(start), Version: listwatch.Version(max(version, 0))}
	if !after {
		p.Key.Name = before(p.Key.Name)
	}
	return p.Encode()
}

// before returns a text that comes after every name that comes before name, and is none: no name has a tilde.
func before(name string) string {
	if name == "" {
		return ""
	}
	last := len(name) - 1
	return name[:last] + string(rune(name[last]-1)) + "~"
}

// kubeToken makes one of theirs of ours, for a list of what is beneath prefix.
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
