package expiry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// put writes the object a. It returns the version, and a time before the write.
func put(e *harness.Env, metadata string) (v listwatch.Version, before time.Time) {
	e.Helper()
	e.Use(harness.Writes)
	key := harness.KeyOf("a")
	body := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q%s},"spec":{"phase":"x"}}`, key.Name, key.Namespace, metadata)
	before = time.Now()
	v, err := e.Objects.Put(e.Context(), key, []byte(body))
	if err != nil {
		e.Fatalf("put a: %v", err)
	}
	return v, before
}

func pause(e *harness.Env, d time.Duration) { e.Pause(d, d) }

// awaitEnd reads the DELETED event of a, which was renewed after the time renewed. The sentinels
// end, too.
func awaitEnd(e *harness.Env, s *harness.Watch, renewed time.Time) {
	e.Helper()
	pause(e, time.Until(renewed.Add(e.TTL)))
	event := s.Next()
	for event.Object.Key.Name != "a" {
		event = s.Next()
	}
	if got := harness.EventLine(event); got != "DELETED a" {
		e.Fatalf("got %s, want DELETED a", got)
	}
}

func deletedOnce(e *harness.Env) {
	v, written := put(e, "")
	s := e.Dial(harness.From(v))
	event := s.Next()
	if lived := time.Since(written); harness.EventLine(event) != "DELETED a" || lived < e.TTL {
		e.Errorf("got %s %v after the write, want DELETED a after at least %v", harness.EventLine(event), lived, e.TTL)
	}
	if last := parse(e, event.Object.Data); event.Version <= v || last.Spec.Phase != "x" {
		e.Errorf("got version %d and %+v, want a version after %d and the last state", event.Version, last, v)
	}
	if more := s.ReadUntil(e.PutSentinel()); len(more) > 0 {
		e.Errorf("got another event: %s", harness.EventLine(more[0]))
	}
	if list := e.ListRaw("").ReadAll(); strings.Contains(string(list), `"name":"a"`) {
		e.Errorf("the object is still listed")
	}
}

func renewSilent(e *harness.Env) {
	v, renewed := put(e, "")
	s := e.Dial(harness.From(v))
	for range 5 {
		pause(e, e.TTL/3)
		late := time.Since(renewed)
		var renewal listwatch.Version
		renewal, renewed = put(e, "")
		if late += time.Since(renewed); late > e.TTL*4/5 {
			e.Skipf("the machine is too slow: the renewal took effect %v after the one before", late)
		}
		if renewal != v {
			e.Fatalf("a renewal returned version %d, want %d, because it changes nothing", renewal, v)
		}
	}
	if events := s.ReadUntil(e.PutSentinel()); len(events) > 0 {
		e.Errorf("got %s, want no event of an object that is renewed in time", harness.EventLine(events[0]))
	}
	awaitEnd(e, s, renewed)
}

func renewUID(e *harness.Env) {
	put(e, "")
	earlier := uid(e)
	e.Delete("a")
	v, _ := put(e, "")
	if status, _ := renew(e, earlier); status != http.StatusConflict {
		e.Errorf("the uid of an earlier object: got status %d, want 409", status)
	}
	status, renewed := renew(e, uid(e))
	if got := renewed.Metadata.ResourceVersion; status != http.StatusOK || got != v.String() {
		e.Errorf("the uid of the object: got status %d and version %s, want 200 and version %d", status, got, v)
	}
	e.Delete("a")
	if status, _ := renew(e, earlier); status != http.StatusNotFound {
		e.Errorf("without an object: got status %d, want 404", status)
	}
}

// uid returns the uid of a.
func uid(e *harness.Env) string {
	e.Helper()
	if _, o := send(e, http.MethodGet, ""); o.Metadata.UID != "" {
		return o.Metadata.UID
	}
	e.Fatalf("get a: it has no uid")
	return ""
}

// renew renews a if it has the given uid. It returns the status and the object in the response.
func renew(e *harness.Env, uid string) (status int, o object) {
	e.Helper()
	return send(e, http.MethodPatch, fmt.Sprintf(`{"metadata":{"uid":%q}}`, uid))
}

// send sends a request for a. It returns the status and the object in the response.
func send(e *harness.Env, method, body string) (status int, o object) {
	e.Helper()
	u := *e.URL
	u.Path, u.RawQuery = e.ResourcePath(harness.DefaultNamespace)+"/a", ""
	r, err := http.NewRequestWithContext(e.Context(), method, u.String(), strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	r.Header = e.WithHeader(http.Header{"Content-Type": {"application/merge-patch+json"}})
	res, err := e.HTTPClient().Do(r)
	if err != nil {
		e.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		e.Fatal(err)
	}
	return res.StatusCode, parse(e, text)
}

// An object has the members that the cases compare.
type object struct {
	Metadata struct{ UID, ResourceVersion string }
	Spec     struct{ Phase string }
}

func parse(e *harness.Env, data []byte) (o object) {
	e.Helper()
	if err := json.Unmarshal(data, &o); err != nil {
		e.Fatalf("%s: %v", data, err)
	}
	return o
}

func finalizers(e *harness.Env) {
	v, written := put(e, `,"finalizers":["example.com/wait"]`)
	s := e.Dial(harness.From(v))
	pause(e, time.Until(written.Add(e.TTL+1200*time.Millisecond)))
	if events := s.ReadUntil(e.PutSentinel()); len(events) > 0 {
		e.Errorf("got %s, want no event of an object with finalizers", harness.EventLine(events[0]))
	}
	_, renewed := put(e, "")
	if event := s.Next(); harness.EventLine(event) != "MODIFIED a" {
		e.Fatalf("got %s, want MODIFIED a", harness.EventLine(event))
	}
	awaitEnd(e, s, renewed)
}
