// Package flags serves a bucket of NATS' key-value store as a Source that can also be written.
//
// A bucket conflates: it keeps only some values of a key, by default one, so a reader that is slow
// or was disconnected does not see the values in between. Watchers get the values that the program
// reads, in order, and always the last one.
package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A Source is a bucket as a [listwatch.Source] and a [store.Backend]. Run feeds it. The key
// NAMESPACE.NAME of the bucket, or _.NAME for an object without a namespace, holds the JSON of that
// object. A value that is not the JSON of that object counts as deleted.
type Source struct {
	*watchcache.Cache
	js     jetstream.JetStream
	stream jetstream.Stream
	prefix string // of the subjects of all keys
}

var errReplaced = errors.New("the bucket was replaced: start the program again")

// New returns the Source of a bucket, whose objects d describes. It fails if values of the bucket
// can disappear without a message, because they expire or because the bucket is full.
func New(
	ctx context.Context, js jetstream.JetStream, bucket string, d listwatch.Description, o watchcache.Options,
) (*Source, error) {
	stream, err := js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return nil, err
	}
	info := stream.CachedInfo()
	if err := checkConfig(info.Config); err != nil {
		return nil, err
	}
	s := &Source{js: js, stream: stream, prefix: "$KV." + bucket + "."}
	o.Newest, d.Epoch = s.newest, epochOf(info)
	s.Cache = watchcache.New(d, o)
	return s, nil
}

// checkConfig returns an error if values of the bucket can disappear without a message, because
// readers would keep such a value forever. If keys can have a TTL of their own, the bucket must
// have a LimitMarkerTTL: NATS then reports an expired key by a marker, which readers must find
// within this time. The bucket must also keep only one value of each key, because NATS writes no
// marker while older values remain.
func checkConfig(c jetstream.StreamConfig) error {
	const lost = "expired values would not be reported as deleted"
	switch {
	case c.MaxAge != 0:
		return fmt.Errorf("the bucket %s has a TTL: %s", c.Name, lost)
	case c.AllowMsgTTL && (c.SubjectDeleteMarkerTTL == 0 || c.MaxMsgsPerSubject != 1):
		return fmt.Errorf("keys of the bucket %s can have a TTL, but it has no LimitMarkerTTL or a history: %s",
			c.Name, lost)
	case c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0):
		return fmt.Errorf("the bucket %s discards old values when it is full, which is not reported as a delete", c.Name)
	}
	return nil
}

// isDelete reports whether a message deletes its key. Besides deletes of clients, these are the
// markers that NATS writes when the value of a key expires.
func isDelete(h nats.Header) bool {
	return h.Get("KV-Operation") != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

// epochOf returns a different epoch for each bucket that was created under the same name. The
// revisions of a new bucket start at 1. If you restore a backup of a bucket, rename the bucket,
// because its revisions go back, too.
func epochOf(info *jetstream.StreamInfo) string { return info.Created.UTC().Format(time.RFC3339Nano) }

// version returns the version of a revision. Versions start at 1, also in an empty bucket.
func version(revision uint64) listwatch.Version { return listwatch.Version(revision + 1) }

// newest returns the version of the last change that the bucket still has.
func (s *Source) newest(ctx context.Context) (listwatch.Version, error) {
	m, err := s.stream.GetLastMsgForSubject(ctx, s.prefix+">")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return version(0), nil
	}
	if err != nil {
		return 0, err
	}
	return version(m.Sequence), nil
}

// Run feeds the cache until ctx ends or the bucket is replaced. It retries after failures.
func (s *Source) Run(ctx context.Context) error {
	for {
		err := s.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, errReplaced) {
			s.Fail(nil)
			return cmp.Or(ctx.Err(), err)
		}
		log.Printf("flags: %v; trying again", err)
		<-time.After(200 * time.Millisecond)
	}
}

// follow reads the changes after the version of the cache with one consumer, until it fails.
func (s *Source) follow(ctx context.Context) error {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return err
	}
	if epochOf(info) != s.Describe().Epoch || s.Version() > version(info.State.LastSeq) {
		return errReplaced
	}
	if err := checkConfig(info.Config); err != nil {
		return err
	}
	consumer, err := s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.prefix + ">"}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq: max(uint64(s.Version()), 1),
	})
	if err != nil {
		return err
	}
	if s.Version() == 0 && info.State.Msgs == 0 {
		if err := s.Replace(nil, version(info.State.LastSeq)); err != nil {
			return err
		}
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)() // ends Next
	return s.read(messages, info.State.LastSeq)
}

// read applies messages. If the cache has no state yet, the messages up to the revision last are
// its first state.
func (s *Source) read(messages jetstream.MessagesContext, last uint64) error {
	state := map[listwatch.Key]*listwatch.Object{}
	for {
		m, err := messages.Next()
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		c := s.change(m, version(meta.Sequence.Stream))
		switch {
		case s.Version() != 0:
			err = s.Apply(c)
		case meta.NumPending > 0 && meta.Sequence.Stream < last:
			state[c.Key] = c.Object
		default:
			state[c.Key] = c.Object
			err = s.Replace(objects(state), c.Version)
		}
		if err != nil {
			return err
		}
	}
}

// objects returns the objects of a state, which has nil for deleted keys.
func objects(state map[listwatch.Key]*listwatch.Object) (all []*listwatch.Object) {
	for _, o := range state {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// noNamespace is the namespace of objects without one in a key of the bucket.
const noNamespace = "_"

func (s *Source) subjectOf(key listwatch.Key) string {
	return s.prefix + cmp.Or(key.Namespace, noNamespace) + "." + key.Name
}

func (s *Source) keyOf(subject string) (key listwatch.Key) {
	key.Namespace, key.Name, _ = strings.Cut(strings.TrimPrefix(subject, s.prefix), ".")
	if key.Namespace == noNamespace {
		key.Namespace = ""
	}
	return key
}

// change converts a message of the bucket.
func (s *Source) change(m jetstream.Msg, v listwatch.Version) watchcache.Change {
	c := watchcache.Change{Version: v, Key: s.keyOf(m.Subject())}
	if isDelete(m.Headers()) {
		return c
	}
	object, err := listwatch.NewObject(m.Data(), v, nil)
	if err == nil && object.Key != c.Key {
		err = fmt.Errorf("the object is %s", object.Key)
	}
	if err != nil {
		log.Printf("flags: %s is no object and counts as deleted: %v", m.Subject(), err)
		return c
	}
	c.Object = object
	return c
}
