// Package fault is a proxy that does to connections what networks do: it resets and cuts them, stalls them, lets bytes vanish, drips and
// delays them, by a plan that follows from a seed, and counts what bit.
//
// The type to start with is [Proxy]. It stands between a client and a server on any net.Listener: on sockets, or in memory, where it runs in
// a bubble of testing/synctest too.
//
//	p := &fault.Proxy{Listener: l, Dial: dialServer, Plan: fault.Random(seed, fault.Mix{Kinds: fault.Kinds(), Bytes: 64 << 10})}
//	go p.Serve()
//	defer p.Close()
//
// A fault bites one connection, once. What bites a proxy's connections as a whole is [Proxy.Strike]; [Proxy.Heal] makes an end of it.
package fault
