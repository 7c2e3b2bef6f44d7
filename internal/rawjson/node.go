package rawjson

// A Node is a value of compact JSON with a cache of its members, for many lookups in one
// document. The first lookup in an object scans all its members. It is not safe for
// concurrent use.
type Node struct {
	doc     []byte
	parsed  bool
	members []childNode // in the order of doc; empty until parsed is set
}

type childNode struct {
	key []byte // in quotes, as written
	Node
}

// NewNode returns the root of doc, which is compact JSON.
func NewNode(doc []byte) Node { return Node{doc: doc} }

// Lookup returns the same value as the function [Lookup].
func (n *Node) Lookup(path ...string) []byte {
	for _, name := range path {
		if n = n.member(name); n == nil {
			return nil
		}
	}
	return n.doc
}

// member returns the last member of the given name, as [Find] does, or nil.
func (n *Node) member(name string) *Node {
	if !n.parsed {
		n.parse()
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if m := &n.members[i]; IsString(m.key, name) {
			return &m.Node
		}
	}
	return nil
}

func (n *Node) parse() {
	n.parsed = true
	if len(n.doc) < 2 || n.doc[0] != '{' {
		return
	}
	n.members = make([]childNode, 0, 8)
	for i := 1; n.doc[i] != '}'; {
		var key, value Span
		key, value, i = nextMember(n.doc, i)
		n.members = append(n.members, childNode{key: key.Of(n.doc), Node: Node{doc: value.Of(n.doc)}})
	}
}
