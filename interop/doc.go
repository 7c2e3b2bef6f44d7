// Package interop is the module of tests with clients and servers of other projects, which run
// unmodified. It is a separate module so that users of listwatch do not get its dependencies. These
// are its packages:
//
//   - clients: client-go, controller-runtime, kubectl, and the clients for JavaScript and Python;
//   - javascript: the conformance suite's cases for clients against the JavaScript client;
//   - clientgo: client-go as a client under test of the conformance suite;
//   - kubernetes: comparisons with Kubernetes' libraries and a Kubernetes API server;
//   - field: a kube-apiserver, with and without a relay in front of it;
//   - components: Kubernetes' controllers and scheduler behind a relay;
//   - definitions: the CustomResourceDefinitions and samples of other projects;
//   - lives: package kubetest and a cluster, compared by random lives of objects;
//   - suites: the test suites of other projects, run on package kubetest and on API servers;
//   - agents: the cost of node agents for a kube-apiserver, with and without relays;
//   - logical: store/postgres over a PostgreSQL, with faults;
//   - storage: Kubernetes' storage test suite over our stores;
//   - etcd: the etcd store over real servers of etcd;
//   - h2spec: conformance to HTTP/2;
//   - http2: our HTTP/2 server and net/http's, compared by real clients of real handlers;
//   - deploy: the commands of docs/operations.md and the files of the folder deploy;
//   - http3: our handlers over HTTP/3;
//   - proxies: nginx, HAProxy and Caddy in front of our server;
//   - examples: the programs of docs/kubernetes.md;
//   - postgres: examples/postgres over a real PostgreSQL;
//   - rivals: a Kubernetes API server for benchmarks/rivals.
package interop
