// Package reflector keeps up with a Source for ever: it gets the state, follows the changes, goes on after an interruption where it was, and
// begins again where it must. What is made of the events is a [Sink]'s.
//
// Start with [Follower]. Package client uses [Progress] and [Waits] alone: its watchers mend streams, and leave it to their reader to begin
// again; a Follower is such a reader, of any Source.
package reflector
