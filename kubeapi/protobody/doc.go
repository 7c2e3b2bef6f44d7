// Package protobody converts Kubernetes objects from Protocol Buffers to JSON. [ToJSON]
// returns the JSON that the same Kubernetes clients send if they are configured for JSON.
//
// The table kubernetes.txt describes the messages: every listable kind of the stable
// versions of Kubernetes' API, every kind that has a scale, the options of a delete, and the
// reviews with which users ask for their own rights. A test in module interop generates the
// table from the Go types of Kubernetes' clients. Another test checks that objects of all
// these kinds are converted to exactly the JSON that encoding/json produces. The package uses
// no generated code and no library.
//
// Nothing is lost silently. If a kind, or a field with a value, is not in the table, the
// body is rejected with status 415, while the same object in JSON would be stored
// completely. (Kubernetes drops unknown fields.) An unknown field whose value is zero
// or empty is ignored, because newer clients write such fields for all members that are not
// pointers.
package protobody
