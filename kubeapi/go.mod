module github.com/listwatch/listwatch/kubeapi

go 1.26.0

replace github.com/listwatch/listwatch => ../

require github.com/listwatch/listwatch v0.0.0

require (
	github.com/evanphx/json-patch/v5 v5.9.11
	github.com/google/go-cmp v0.7.0
	go.yaml.in/yaml/v3 v3.0.6
)

require (
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	nhooyr.io/websocket v1.8.17 // indirect
)
