// Package patch has no code: its tests hold our strategic merge patch to the one that Kubernetes' own clients and servers use.
package patch
