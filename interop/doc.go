// Package interop has no code: the packages beneath it run clients that are not ours, unmodified, against our server, and the test
// suites of Kubernetes against our stores. It is a module of its own, so that what it needs burdens nobody who imports listwatch.
package interop
