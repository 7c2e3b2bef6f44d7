module github.com/listwatch/listwatch/interop/http3

go 1.26.0

replace github.com/listwatch/listwatch => ../..

require (
	github.com/listwatch/listwatch v0.0.0
	github.com/quic-go/quic-go v0.65.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
