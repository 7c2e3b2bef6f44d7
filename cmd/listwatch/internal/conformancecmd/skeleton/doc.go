// Package skeleton holds the adapters that "listwatch conformance init" writes.
package skeleton

import "embed"

// Files are the adapters and their known failures.
//
//go:embed *.py *.mjs *.txt goclient/main.go goserver/main.go
var Files embed.FS
