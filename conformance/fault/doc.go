// Package fault is a TCP proxy that injects network faults: it resets, cuts, stalls,
// blackholes, throttles and delays connections. The faults follow a plan, which can be
// random and reproducible from a seed, and the proxy counts each fault that took effect.
//
// The main type is [Proxy]. It listens on any net.Listener and forwards to a server. It
// also works on in-memory connections within a testing/synctest bubble.
//
//	plan := fault.Random(seed, fault.RandomOptions{
//		Kinds: fault.Kinds(), MaxBytes: 64 << 10, MaxDuration: time.Minute,
//	})
//	p := &fault.Proxy{Listener: l, Dial: dialServer, Plan: plan}
//	go p.Serve()
//	defer p.Close()
//
// A planned fault affects one connection, once. [Proxy.InjectAll] starts a fault on all
// open connections, and [Proxy.Heal] ends all faults except [HalfOpen].
package fault
