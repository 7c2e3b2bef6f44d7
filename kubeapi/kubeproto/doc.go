// Package kubeproto is the encoding of Kubernetes' Protocol Buffers: objects, lists and watches
// keep the bytes of the API server. Typed clients of client-go request it by default.
//
//	pods := &client.Remote{URL: url, Framings: []framing.Framer{kubeproto.Framing{}}}
//	r := relay.Open(pods, relay.Options{})
//
// The bytes of an object are the body of a response to a get: the prefix "k8s\x00" and an envelope
// (runtime.Unknown) with the type and the message of the object. Of the message, the package only
// knows that its first field is the ObjectMeta. So it carries every kind, and fields that are newer
// than it. Only the values of field selectors depend on the kinds of Kubernetes' Go packages.
//
// Custom resources have no Protocol Buffers. For requests in Protocol Buffers to a server whose
// objects are JSON, see package protobody.
package kubeproto
