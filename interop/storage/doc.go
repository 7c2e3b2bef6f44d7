// Package storage runs the test suite of Kubernetes' own storage layers, k8s.io/apiserver/pkg/storage/testing, over our stores.
// docs/kubernetes-storage-suite.md says what runs and what can't.
//
// [Storage] translates between their interface and ours and does nothing else: keys become names, predicates become selectors,
// resource versions become a start, errors become a Status. Every list, page, exact read, watch, transition, bookmark position and
// conflict is our store's, because that is what is tested. It stands on a [store.Backend] and not on a collection: like etcd,
// it must keep an object as it is given, and the rules of metadata are the business of who calls it.
package storage
