// Package definitions loads the definitions of custom resources that other projects publish, and
// creates these projects' own samples, in kubetest, in `listwatch serve --crd`, and in the API
// server of Kubernetes that serves custom resources. All must accept the same definitions and
// samples, complete them alike, and print the same columns.
//
// The files come from the module proxy at the time of the test; none is in this repository.
package definitions
