module github.com/listwatch/listwatch/examples/extending

go 1.26.0

replace (
	github.com/listwatch/listwatch => ../..
	github.com/listwatch/listwatch/conformance => ../../conformance
	github.com/listwatch/listwatch/kubeapi => ../../kubeapi
)

require (
	github.com/listwatch/listwatch v0.0.0
	github.com/listwatch/listwatch/conformance v0.0.0
	github.com/vmihailenco/msgpack/v5 v5.4.1
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	nhooyr.io/websocket v1.8.17 // indirect
)
