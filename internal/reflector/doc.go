// Package reflector follows a Source: it obtains the state, reads the changes, resumes after an
// interruption, and requests the state again when it cannot resume. A [Sink] receives the events.
//
// Packages client, informer and relay are built on this loop, and each event passes it once: if the
// Source is a client.Remote, informers and relays follow its connections; see [Direct]. The loop
// never gives up, as informers and relays need. Package client sets [Reflector.Restart], because
// its watchers must report some failures to their reader.
//
// reflector.go has the loop, open.go opens a watch or lists, policy.go decides how to continue
// after a failure, resume.go tracks the version to resume from, and backoff.go computes the
// delays.
package reflector
