// Package clientgo has no code: its tests run client-go, unmodified, against our server.
package clientgo
