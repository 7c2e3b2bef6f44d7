package rawjson

// A Node is a value that is looked into often. The members of each object on the way are found in one walk, when the first of them is
// asked for. It is for compact JSON, and not safe for concurrent use.
type Node struct {
	doc     []byte
	walked  bool
	members []member // in the writer's order, once walked
}

type member struct {
	key []byte // in quotes, as written
	Node
}

// NewNode returns the root of doc.
func NewNode(doc []byte) Node { return Node{doc: doc} }

// Lookup returns what the function of this name does.
func (n *Node) Lookup(path ...string) []byte {
	for _, name := range path {
		if n = n.member(name); n == nil {
			return nil
		}
	}
	return n.doc
}

// member returns the last one of a name, as [Find] does; nil where there is none.
func (n *Node) member(name string) *Node {
	if !n.walked {
		n.walk()
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if m := &n.members[i]; spells(m.key, name) {
			return &m.Node
		}
	}
	return nil
}

func (n *Node) walk() {
	n.walked = true
	if len(n.doc) < 2 || n.doc[0] != '{' {
		return
	}
	n.members = make([]member, 0, 8)
	for i := 1; n.doc[i] != '}'; {
		var key, value Span
		key, value, i = next(n.doc, i)
		n.members = append(n.members, member{key: key.Of(n.doc), Node: Node{doc: value.Of(n.doc)}})
	}
}
