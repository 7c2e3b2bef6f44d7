package apihttp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/httpbody"
)

// An Admitted describes a request that has passed a [Gate]: its sender, its resource, and how much
// of the limits it uses. The gate returns that amount when its handler returns. It must be used by
// one goroutine only.
type Admitted struct {
	// User is the name of the user, or empty if the user is unknown. Client is the name of the
	// client whose share of the limits the request uses.
	User, Client string
	// Resource is the resource that the request addresses. The handler that knows it sets it.
	Resource Resource
	// Represent offers other representations of the objects. If nil, there are none.
	Represent RepresentationFunc
	// NoCompression disables the compression of the response.
	NoCompression bool

	gate     *Gate
	passage  passage
	rechecks uint64 // the value of gate.rechecks when the request entered
	taken    budget.Amount
	*Parsed  // nil after Forget
}

// A passage records what the gate has done for a request, which may enter it several times.
type passage struct {
	entered    int  // the number of calls of Enter without Leave
	checked    bool // the request has passed Gate.check
	identified bool // the user is known
	// queryInBody is set after a QUERY. Then the request is a GET whose URL may exceed its limit.
	queryInBody bool
}

// A Resource identifies a collection, as the labels of a metric do.
type Resource struct{ Group, Version, Name string }

// DescribeResource returns the resource that source describes. If name, the plural name, is empty,
// the kind is used.
func DescribeResource(source listwatch.Source, name string) Resource {
	d := listwatch.Describe(source)
	group, version, ok := strings.Cut(d.APIVersion, "/")
	if !ok {
		group, version = "", d.APIVersion
	}
	return Resource{Group: group, Version: version, Name: cmp.Or(name, d.Kind)}
}

// Outdated reports whether users have lost credentials or rights since the request entered.
func (a *Admitted) Outdated() bool { return a.gate.rechecks.Load() != a.rechecks }

// A Change describes a write that succeeded.
type Change struct {
	// Verb is the verb of Kubernetes.
	Verb string
	// Key and Version identify the object in the response. After a deletecollection, Version is
	// zero and the name is empty.
	Key     listwatch.Key
	Version listwatch.Version
	// DryRun is true if the write was only checked.
	DryRun bool
	// Took is the time from the start of the request to the end of the response.
	Took time.Duration
}

// Changed reports the write r after its response.
func (a *Admitted) Changed(r *http.Request, c Change) { a.gate.Changed(r, a, c) }

// Forget releases the memory of what was parsed. A watch, which may last for hours, calls Forget
// when it has started.
func (a *Admitted) Forget() { a.Parsed, a.Represent = nil, nil }

// Leave says that the request leaves a gate. When it leaves the first gate that it entered, Leave
// returns what the request has taken from the limits.
func (a *Admitted) Leave() {
	if a.passage.entered--; a.passage.entered == 0 {
		a.gate.budget.Return(a.Client, a.taken)
	}
}

// take takes more from the budget of the server. Leave returns it.
func (a *Admitted) take(more budget.Amount) error {
	limits := a.gate.Limits()
	stored := int64(0)
	if more.Bytes > 0 {
		stored, _ = a.gate.stored.read(limits.Stored)
	}
	if name := a.gate.budget.Take(a.Client, more, limits.budget(stored, a.gate.BlockCache().Used())); name != "" {
		return TooMany(name, "the server, or this client's half of it, is busy (limit: "+name+"); retry later")
	}
	a.taken.Requests += more.Requests
	a.taken.Writes += more.Writes
	a.taken.Bytes += more.Bytes
	return nil
}

// Begin takes a seat. A read of one object must call it before it uses a collection. A write takes
// its seat in ReadBody. An error has status 429.
func (a *Admitted) Begin() error { return a.take(budget.Amount{Requests: 1}) }

// answering is called when the response begins. It returns the seat of a, so that a client that
// does not read the response occupies only memory.
func (a *Admitted) answering() {
	returned := a.taken
	returned.Bytes = 0
	a.taken = budget.Amount{Bytes: a.taken.Bytes}
	a.gate.budget.Return(a.Client, returned)
}

// BeginList takes the memory for a list. A list must call it before it reads a collection. It takes
// no seat: large lists take turns (see [budget.Turns]), so many of them take longer but do not keep
// the other requests from their seats. An error has status 429.
func (a *Admitted) BeginList() error { return a.take(budget.Amount{Bytes: listBytes}) }

// GrowList takes the memory for the references to the items of a list. An error has status 429.
func (a *Admitted) GrowList(items int) error {
	return a.take(budget.Amount{Bytes: int64(items) * itemBytes})
}

const (
	// bodyFactor is the memory that a write takes, in multiples of the size of its body.
	bodyFactor = 4
	// The memory for a body is taken for as many bytes as have arrived, but at least minBodyStep
	// and at most maxBodyStep at a time.
	minBodyStep = 1 << 10
	maxBodyStep = 64 << 10
	// listBytes is the memory that a large response takes for its goroutine and its buffers.
	listBytes = 256 << 10
	// itemBytes is the memory for a reference to an object.
	itemBytes = 8
)

// ReadBody reads the body of a write. A body of more than limit bytes is refused with status 413,
// and a client that takes longer than 30 s with status 400. A negative limit means no limit. A
// drain shortens the 30 s. The part of the body that has arrived counts against Limits.Memory. When
// all of it has arrived, the write takes a seat, and counts against Limits.Writes. If one of these
// limits is exceeded, the error has status 429. If stored data fills its part of the memory, the
// error has status 507, except for a DELETE.
func (a *Admitted) ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := a.gate.checkStored(r); err != nil {
		return nil, err
	}
	data, err := a.readBody(w, r, limit)
	if err == nil {
		if err := a.take(budget.Amount{Requests: 1, Writes: 1}); err != nil {
			return nil, err
		}
		return data, nil
	}
	return nil, bodyError(err, limit)
}

// bodyError returns the error for the client whose body could not be read because of err.
func bodyError(err error, limit int64) error {
	if _, ok := errors.AsType[*LimitError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return BodyTooLarge(limit)
	}
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the request body could not be read", Err: err}
}

// readBody reads the body of r, and takes the memory for it as it arrives.
func (a *Admitted) readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body := r.Body
	if body != nil && body != http.NoBody {
		r.Body = &countedBody{ReadCloser: body, admitted: a, expected: r.ContentLength}
		defer func() { r.Body = body }()
	}
	return httpbody.Read(a.gate.Draining(), w, r, limit)
}

// A countedBody takes the memory for a body before it reads it.
type countedBody struct {
	io.ReadCloser
	admitted *Admitted
	expected int64 // the bytes that are still expected; negative if unknown
	taken    int64 // the bytes that may be read without taking more memory
	arrived  int64
}

// Read implements [io.Reader].
func (b *countedBody) Read(p []byte) (int, error) {
	if b.taken == 0 && b.expected != 0 && len(p) > 0 {
		step := min(max(b.arrived, minBodyStep), maxBodyStep)
		if b.expected > 0 {
			step = min(step, b.expected)
			b.expected -= step
		}
		if err := b.admitted.take(budget.Amount{Bytes: bodyFactor * step}); err != nil {
			return 0, err
		}
		b.taken = step
	}
	if b.taken > 0 {
		p = p[:min(int64(len(p)), b.taken)]
	}
	n, err := b.ReadCloser.Read(p)
	b.taken -= int64(n)
	b.arrived += int64(n)
	return n, err
}

// GrowBody takes additional memory for a body that grew by the given number of bytes when it was
// converted to JSON. The error has status 429.
func (a *Admitted) GrowBody(more int) error {
	if more <= 0 {
		return nil
	}
	return a.take(budget.Amount{Bytes: bodyFactor * int64(more)})
}

type admittedKey struct{}

// An admittedContext is the context of an admitted request. It is one value instead of a chain,
// because the context of a watch may last for hours.
type admittedContext struct {
	context.Context // the context of the request in front of the gate, with the user
	admitted        *Admitted
}

func (c *admittedContext) Value(key any) any {
	switch key.(type) {
	case admittedKey:
		return c.admitted
	case budget.ClaimKey:
		return budget.Claim{Turns: &c.admitted.gate.turns, Client: c.admitted.Client}
	}
	return c.Context.Value(key)
}

// admittedOf returns the Admitted of r, or nil if r has not passed a gate.
func admittedOf(r *http.Request) *Admitted {
	a, _ := r.Context().Value(admittedKey{}).(*Admitted)
	return a
}

// QueryOf returns the parameters of r that can be parsed.
func QueryOf(r *http.Request) url.Values {
	if a := admittedOf(r); a != nil {
		return a.Params.Values
	}
	return r.URL.Query()
}

// AcceptOf returns the media ranges that r accepts.
func AcceptOf(r *http.Request) ([]framing.MediaRange, error) {
	if a := admittedOf(r); a != nil {
		return a.accept, a.acceptErr
	}
	return framing.ParseAccept(r.Header.Values("Accept"))
}

// Respond sends the response for err, the result of a handler. It does nothing if err is nil.
func (a *Admitted) Respond(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		return
	}
	if ended := r.Context().Err(); ended != nil && errors.Is(err, ended) {
		err = ContextError(r.Context())
	}
	a.Refuse(w, r, err)
}

// Refuse responds to r with err, like [WriteError], and then calls Gate.Refused.
func (a *Admitted) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	defer a.gate.Refused(r, a, err)
	a.answering()
	WriteError(w, r, err)
}
