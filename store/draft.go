package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A draft is an object on its way to a commit. What the server sets in its metadata stands where the writer had it, else at the
// end, in this order: name, namespace, uid, resourceVersion, generation, creationTimestamp.
type draft struct {
	doc          *document
	key          listwatch.Key
	generateName string // not empty where key.Name has still to be made of it
	labels       map[string]string
	finalizers   []string
}

// readDraft takes data apart and checks it. want says which key it must have; a member of want that is empty is not demanded.
func (r CollectionSpec) readDraft(data []byte, want listwatch.Key) (*draft, error) {
	doc, err := readDocument(data)
	if err != nil {
		return nil, err
	}
	d := &draft{doc: doc}
	if err := r.setType(doc); err != nil {
		return nil, err
	}
	if err := d.readMeta(); err != nil {
		return nil, err
	}
	if want.Name != "" && d.key.Name != want.Name {
		return nil, badRequest("the name of the object (%s) must be the one it was asked for by (%s)", d.key.Name, want.Name)
	}
	if want.Namespace != "" {
		if d.key.Namespace != "" && d.key.Namespace != want.Namespace {
			return nil, badRequest("the namespace of the object (%s) must be the one it was asked for by (%s)", d.key.Namespace, want.Namespace)
		}
		d.key.Namespace = want.Namespace
	}
	if causes := r.complaints(d); causes != nil {
		return nil, r.invalid(d.key.Name, causes)
	}
	return d, nil
}

// setType fills kind and apiVersion in, in front, and refuses others than those of r.
func (r CollectionSpec) setType(doc *document) error {
	for _, m := range []struct{ name, want string }{{"apiVersion", r.APIVersion}, {"kind", r.Kind}} {
		got, err := doc.text(m.name)
		if err != nil {
			return err
		}
		switch {
		case got == m.want:
		case got != "":
			return badRequest("%s is %q, but %s holds %q", m.name, got, r.QualifiedName(), m.want)
		default:
			doc.setFront(m.name, m.want)
		}
	}
	return nil
}

// readMeta reads what the rules are about. Members of a wrong type are a bad request.
func (d *draft) readMeta() (err error) {
	if err := checkMeta(find(d.doc.members, "metadata").Value); err != nil {
		return err
	}
	if d.key.Name, err = d.doc.metaText("name"); err != nil {
		return err
	}
	if d.key.Namespace, err = d.doc.metaText("namespace"); err != nil {
		return err
	}
	if d.key.Name == "" {
		if d.generateName, err = d.doc.metaText("generateName"); err != nil {
			return err
		}
	}
	if d.labels, err = d.doc.labels("labels"); err != nil {
		return err
	}
	d.finalizers, err = d.doc.finalizers()
	return err
}

// create sets what the server sets on a new object.
func (d *draft) create(now time.Time) {
	d.setKey()
	d.doc.keepMarks(nil)
	d.doc.setMeta("uid", quote(newUID()))
	d.doc.setMeta("resourceVersion", nil)
	d.doc.setMeta("generation", []byte("1"))
	d.doc.setMeta("creationTimestamp", quote(now.UTC().Format(time.RFC3339)))
}

// update keeps of old what no writer may change. It reports whether anything is left that is to be written.
func (d *draft) update(old *document, now time.Time) (changed bool) {
	d.setKey()
	d.doc.keepMarks(old)
	content := !equalMembers(d.doc.members, old.members, "kind", "apiVersion", "metadata", "status")
	if !content &&
		equalMembers(d.doc.members, old.members, "metadata") &&
		equalMembers(d.doc.meta, old.meta, append(marks[:], "uid", "resourceVersion", "generation", "creationTimestamp")...) {
		return false
	}
	uid, created := find(old.meta, "uid"), find(old.meta, "creationTimestamp")
	if uid == nil || created == nil {
		// A foreign writer left them out.
		uid = &rawjson.Member{Value: quote(newUID())}
		created = &rawjson.Member{Value: quote(now.UTC().Format(time.RFC3339))}
	}
	generation := generationOf(old)
	if content {
		generation++
	}
	d.doc.setMeta("uid", uid.Value)
	d.doc.setMeta("resourceVersion", nil)
	d.doc.setMeta("generation", strconv.AppendInt(nil, generation, 10))
	d.doc.setMeta("creationTimestamp", created.Value)
	return true
}

// setKey spells the key where the writer had left it out.
func (d *draft) setKey() {
	if got, err := d.doc.metaText("name"); err != nil || got != d.key.Name {
		d.doc.setMeta("name", quote(d.key.Name))
	}
	if got, err := d.doc.metaText("namespace"); err != nil || got != d.key.Namespace {
		d.doc.setMeta("namespace", quote(d.key.Namespace))
	}
}

func generationOf(old *document) int64 {
	m := find(old.meta, "generation")
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// equalMembers compares what was written, in its order, but for the members named.
func equalMembers(a, b []rawjson.Member, but ...string) bool {
	next := func(from []rawjson.Member) []rawjson.Member {
		for len(from) > 0 && slices.Contains(but, from[0].Name) {
			from = from[1:]
		}
		return from
	}
	for {
		a, b = next(a), next(b)
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if !bytes.Equal(a[0].Key, b[0].Key) || !bytes.Equal(a[0].Value, b[0].Value) {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

// seal returns d as backends take it.
func (r CollectionSpec) seal(d *draft) *Draft {
	before, after := d.doc.render()
	out := &Draft{Key: d.key, Labels: d.labels, Before: before, After: after}
	if len(r.Fields) > 0 {
		whole := make([]byte, 0, len(before)+len(`""`)+len(after))
		whole = append(append(append(whole, before...), `""`...), after...)
		out.Fields = r.ReadFields(whole)
	}
	return out
}

// newUID returns a random UUID (RFC 9562, version 4).
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program rather
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
