package rawjson

// WithType returns doc, a compact object that is not empty, with kind and apiVersion as its first
// members. A member that doc already has stays as it is.
func WithType(doc []byte, apiVersion, kind string) []byte {
	var head []byte
	if Lookup(doc, "kind") == nil {
		head = append(AppendString([]byte(`{"kind":`), kind), ',')
	}
	if Lookup(doc, "apiVersion") == nil {
		if head == nil {
			head = []byte{'{'}
		}
		head = append(AppendString(append(head, `"apiVersion":`...), apiVersion), ',')
	}
	if head == nil {
		return doc
	}
	return append(head, doc[1:]...)
}
