package etcd

import "runtime"

// heap returns how many bytes are in use.
func heap() int {
	runtime.GC()
	runtime.GC() // what pools gave back by the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
