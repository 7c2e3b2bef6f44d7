// Package metadata has no code: its tests hold our check of an object's metadata to what Kubernetes' typed clients can decode.
package metadata
