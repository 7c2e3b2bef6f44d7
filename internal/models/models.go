// Package models holds models of the state machines behind the resumption of watches, for the model
// checker Spin (https://spinroot.com). It explores all interleavings of a small configuration.
//
//   - cursor.pml: the phases of a cursor of internal/history, with a client that applies states and
//     differences.
//   - relay.pml: the epochs, gaps and departures of a relay.
//
// Each model has macros that put a defect into it. The test checks that the model is right without
// them and that Spin finds each defect. Run it with make long-models.
package models
