// Package protobody reads objects that the clients of Kubernetes write in Protocol Buffers, and returns the JSON that the same clients
// write when they are told to: [JSON] is all there is.
//
// What it knows of messages is the table kubernetes.txt: every kind of the stable versions of Kubernetes' API that can be listed, what
// has a scale, and the options of a delete. A test beside the clients of Kubernetes writes the table from their Go types, and another one
// holds that objects of all these kinds come out as encoding/json has them. No generated code and no library is behind it.
//
// Nothing is lost in silence: a kind, or a field with a value, that the table doesn't have is refused with 415, and the same object in JSON
// would be kept whole. (Kubernetes drops the fields that it doesn't know.) A field without a value, 0 or empty, is not missed: newer
// clients write these for all their fields that are no pointers.
package protobody
