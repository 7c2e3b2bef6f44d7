module github.com/listwatch/listwatch/oidc

go 1.26.0

require (
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/listwatch/listwatch v0.0.0
)

require (
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/listwatch/listwatch => ../
