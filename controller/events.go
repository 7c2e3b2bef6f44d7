package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/typed"
)

// A Recorder writes Events. An Event is an object of the kind Event of v1 that reports an action of
// a controller; kubectl describe shows it. The same event about the same object is one Event with a
// count, even after a restart and with several controllers, because the name of an Event is a hash
// of its content.
//
// A Kubernetes cluster deletes Events after an hour. In other stores, nothing deletes them.
type Recorder struct {
	// Events is the collection of events in a store or behind a URL:
	//
	//	store.CollectionSpec{Kind: "Event", Namespaced: true}
	//
	// or https://HOST/api/v1/events.
	Events listwatch.Store
	// Component is the name of the controller.
	Component string
}

// An EventType is the type of an Event.
type EventType string

// The types of an Event.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// A Reference names the object that an Event is about.
type Reference struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// Record writes an Event about an object, in the namespace of the object or, if it has none, in
// "default". reason is one word for programs, such as "Created", and message is a sentence for
// people. If the message differs each time, for example by a time, each call creates a new Event.
func (r Recorder) Record(ctx context.Context, about Reference, kind EventType, reason, message string) error {
	e := r.event(about, kind, reason, message)
	events := typed.Collection[event]{Store: r.Events}
	for {
		_, err := events.Update(ctx, e.Key(), func(stored *event) error {
			stored.Count, stored.Last = stored.Count+1, e.Last
			return nil
		})
		if !errors.Is(err, listwatch.NotFound) {
			return err
		}
		if _, err = events.Create(ctx, e); !errors.Is(err, listwatch.AlreadyExists) {
			return err
		}
	}
}

// event returns the Event for the first occurrence.
func (r Recorder) event(about Reference, kind EventType, reason, message string) (e event) {
	content := strings.Join([]string{
		r.Component, about.APIVersion, about.Kind, about.Namespace, about.Name, about.UID, string(kind), reason,
		message,
	}, "\x00")
	digest := sha256.Sum256([]byte(content))
	e.APIVersion, e.Kind, e.About = "v1", "Event", about
	e.Namespace = cmp.Or(about.Namespace, "default")
	const maxName = 253 - len(".") - 16
	e.Name = about.Name[:min(len(about.Name), maxName)] + "." + hex.EncodeToString(digest[:8])
	now := time.Now().UTC().Truncate(time.Second)
	e.Type, e.Reason, e.Message, e.Count, e.First, e.Last = kind, reason, message, 1, now, now
	e.Source.Component = r.Component
	return e
}

// An event is an Event of v1.
type event struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	listwatch.Metadata `json:"metadata"`
	About              Reference `json:"involvedObject"`
	Type               EventType `json:"type"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	Source             struct {
		Component string `json:"component,omitempty"`
	} `json:"source"`
	Count int       `json:"count"`
	First time.Time `json:"firstTimestamp"`
	Last  time.Time `json:"lastTimestamp"`
}
