// Package storage runs the test suite of Kubernetes' storage layers,
// k8s.io/apiserver/pkg/storage/testing, over our stores: all of its 63 exported tests except for
// the one in exceptions_test.go. Nine of them run only with make long-storage, one at a time,
// because they wait for a fraction of a second.
//
// [Storage] only translates between the interface of Kubernetes and ours: keys become
// names, predicates become selectors, resource versions become starts, and errors become a
// Status. The purpose is to test our stores, so every list, page, exact read, watch,
// selector transition, bookmark and conflict comes from the store. Storage uses a
// [store.Backend] and not a collection, because it must store an object unchanged: the
// callers of a storage layer apply the rules for metadata.
//
// The suite needs three features that our stores do not have, so Storage adds them:
// GuaranteedUpdate and Delete retry conflicts, a watch sends a bookmark every half second, and
// an object is stored encrypted if a test has a transformer.
//
// To test another store, add a line such as func TestBolt(t *testing.T) { runSuite(t, openBolt) }
// and a function that opens an empty database whose first write has version 2.
package storage
