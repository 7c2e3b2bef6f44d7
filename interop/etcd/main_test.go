package etcd

import (
	"os"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	os.Exit(m.Run())
}
