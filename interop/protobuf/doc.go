// Package protobuf has no code: its tests hold our reading of objects in Protocol Buffers to Kubernetes' own.
package protobuf
