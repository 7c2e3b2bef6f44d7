// The program coredns serves the names of a cluster. It is built by tools/reader, and is no part of
// this module, because it needs github.com/coredns/coredns. It has only the plugins of the test,
// since all of them would take minutes to build.
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
