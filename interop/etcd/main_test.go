package etcd

import (
	"os"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	serverMain()
	os.Exit(m.Run())
}
