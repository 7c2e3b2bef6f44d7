// The program coredns serves the names of a cluster. tools/reader builds it. It is not a part of
// this module, because it needs github.com/coredns/coredns. It has only the plugins that the test
// needs: building all plugins would take minutes.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	coremain.Run()
}
