// Package storage runs the test suite of Kubernetes' storage layers,
// k8s.io/apiserver/pkg/storage/testing, over our stores. docs/kubernetes-storage-suite.md
// lists the tests that run and the exceptions.
//
// [Storage] only translates between the interface of Kubernetes and ours: keys become
// names, predicates become selectors, resource versions become starts, and errors become a
// Status. The purpose is to test our stores, so every list, page, exact read, watch,
// selector transition, bookmark and conflict comes from the store. Storage uses a
// [store.Backend] and not a collection, because it must store an object unchanged: the
// callers of a storage layer apply the rules for metadata.
package storage
