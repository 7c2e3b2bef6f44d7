package listwatch

// An Encoding is a form of objects other than JSON, such as Protocol Buffers. The objects of a
// collection all have the encoding that [Description.Encoding] names, and nothing converts them: a
// client receives the bytes that the Source has. An encoding of lists is a framing.ListEncoding.
//
// What a server writes itself stays JSON in memory: the objects of bookmarks, and the Deleted
// events of a difference, of which only the key is known. The framing of a stream writes these in
// the form of its own. So the bytes of an object must not begin with "{".
//
// An Encoding must be comparable, and safe for concurrent use.
type Encoding interface {
	// Read returns the object in data, without Fields. The object keeps data. Read must refuse data
	// that WithVersion cannot change. If the resourceVersion is not a decimal number, the error has
	// code [Unsupported]. If data is no object, the error has code [Invalid]. A missing name or
	// resourceVersion is no error.
	Read(data []byte) (*Object, error)
	// Fields returns the value at each of paths, for field selectors. It is empty if data has no
	// such value, or if the value is not a string, a number or a boolean. Read has accepted data.
	Fields(data []byte, paths []string) []string
	// WithVersion returns a copy of data whose resourceVersion is v. Read has accepted data.
	WithVersion(data []byte, v Version) []byte
}
