// Package protobody converts Kubernetes objects from Protocol Buffers to JSON. [ToJSON]
// returns the JSON that the same Kubernetes clients send if they are configured for JSON.
//
// The objects are decoded into the Go types of Kubernetes' clients: every kind of the stable
// versions of Kubernetes' API, the options of a delete, and the reviews from which users learn what
// they may do.
//
// Nothing is lost silently. If a kind, or a field with a value, is unknown, the body is rejected
// with status 415, while the same object in JSON would be stored completely. (Kubernetes drops
// unknown fields.) An unknown field whose value is zero or empty is ignored, because newer clients
// write such fields for all members that are not pointers.
package protobody
