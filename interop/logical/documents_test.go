//go:build unix

package logical

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/postgres"
)

func TestDocumentsAreAStore(t *testing.T) {
	server := pgtest.Start(t)
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		url, err := server.CreateSchema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := postgres.Options{History: listwatch.Retention{Bytes: historyBytes}, Publication: t.Name()}
		db, err := postgres.Open(t.Context(), url, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // always nil
		return db
	}, conformance.Exceptions{
		"consecutive-versions":  "a version is a position in the log of PostgreSQL",
		"resume/server-restart": "the case loses its data: the new table is in the same database, so the epoch is the same",
	})
}

var flagSpec = store.CollectionSpec{Kind: "Flag", Namespaced: true, Fields: []string{"spec.on"}}

// flags opens the collection of flags.
func (d *database) flags(o postgres.Options) (*postgres.DB, *store.Collection) {
	d.Helper()
	db := d.open(o)
	return db, testkit.Must(db.Collection(flagSpec))(d)
}

func flagNamed(name, rest string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q},"spec":{%s}}`, name, rest)
}

// serveFlags starts a server whose resources are in PostgreSQL, and returns its URL of the flags.
func (d *database) serveFlags(path string) string {
	d.Helper()
	p := program.Start(d, path, "serve", "--addr", "127.0.0.1:0", "--postgres", d.url, "--resource",
		"flags.v1.demo.example.com=Flag")
	return p.URL() + "/apis/demo.example.com/v1/namespaces/a/flags"
}

// listwatch serve keeps all resources in PostgreSQL. Servers that start at the same time share one
// table, which one of them creates.
func TestServersOfTheProgramShareDocuments(t *testing.T) {
	path := program.Build(t)
	d := newDatabase(t)
	urls := make([]string, 3)
	var starting sync.WaitGroup
	for i := range urls {
		starting.Go(func() { urls[i] = d.serveFlags(path) })
	}
	starting.Wait()
	for i, url := range urls {
		body := strings.NewReader(fmt.Sprintf(`{"metadata":{"generateName":"f-"},"spec":{"n":%d}}`, i))
		response, err := http.Post(url, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			t.Errorf("POST: status %d", response.StatusCode)
		}
	}
	want := ""
	for i, url := range urls {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || strings.Count(string(body), `"kind":"Flag"`) != 3 {
			t.Errorf("server %d lists %s (%v), want three flags", i, body, err)
		}
		if i == 0 {
			want = string(body)
		} else if diff := cmp.Diff(want, string(body)); diff != "" {
			t.Errorf("server %d has another list: %s", i, diff)
		}
	}
}

// Writes that a server has received before SIGTERM still succeed.
func TestServerEndsAfterItsWrites(t *testing.T) {
	d := newDatabase(t)
	p := program.Start(t, program.Build(t), "serve", "--addr", "127.0.0.1:0", "--postgres", d.url, "--resource",
		"flags.v1.demo.example.com=Flag")
	var writing sync.WaitGroup
	started := make(chan struct{}, 1000)
	defer writing.Wait()
	for range 8 {
		writing.Go(func() {
			for {
				response, err := http.Post(p.URL()+"/apis/demo.example.com/v1/namespaces/a/flags", "application/json",
					strings.NewReader(`{"metadata":{"generateName":"f-"}}`))
				if err != nil {
					return // the server has ended
				}
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusCreated {
					t.Errorf("status %d: %s", response.StatusCode, body)
					return
				}
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		select {
		case <-started:
		case <-time.After(time.Minute):
			t.Error("the server does not accept writes")
		}
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// The servers of one table show the same objects at the same versions. A client resumes at any of
// them.
func TestServersShareDocuments(t *testing.T) {
	d := newDatabase(t)
	_, first := d.flags(postgres.Options{})
	_, second := d.flags(postgres.Options{})
	created := testkit.Must(first.Create(t.Context(), flagNamed("x", `"on":true`)))(t)
	read := testkit.Must(second.Get(t.Context(), created.Key))(t)
	if diff := cmp.Diff(created, read); diff != "" {
		t.Errorf("the other server has another object: %s", diff)
	}
	if _, err := second.Create(t.Context(), flagNamed("x", "")); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("a second create of the same name: got %v, want AlreadyExists", err)
	}
	updated := testkit.Must(second.Replace(t.Context(), created.Key,
		[]byte(strings.Replace(string(read.Data), "true", "false", 1))))(t)
	if _, err := first.Replace(t.Context(), created.Key, created.Data); !errors.Is(err, listwatch.Conflict) {
		t.Errorf("a write with the version before: got %v, want Conflict", err)
	}
	deleted := testkit.Must(first.Delete(t.Context(), created.Key, listwatch.Preconditions{}))(t)
	for i, c := range []*store.Collection{first, second} {
		w := testkit.Must(c.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: created.Version}))(t)
		var got []string
		for e, err := range listwatch.All(t.Context(), w) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(e.Type, " ", e.Version, " ", string(e.Object.Data)))
			if e.Type == listwatch.Deleted {
				break
			}
		}
		want := []string{
			fmt.Sprint("MODIFIED ", updated.Version, " ", string(updated.Data)),
			fmt.Sprint("DELETED ", deleted.Version, " ", string(deleted.Data)),
		}
		if !slices.Equal(got, want) {
			t.Errorf("server %d resumes with %q, want %q", i, got, want)
		}
		_ = w.Close()
	}
}

// Two servers and many writers increment numbers, while connections are lost. No increment is lost,
// and all servers end with the same objects at the same versions.
func TestConcurrentWritersOfDocumentsLoseNothing(t *testing.T) {
	d := newDatabase(t)
	const writers, increments = 6, 20
	var servers []*store.Collection
	for range 2 {
		_, c := d.flags(postgres.Options{Anchor: "listwatch_anchor"})
		servers = append(servers, c)
	}
	key := testkit.Must(servers[0].Create(t.Context(), flagNamed("x", `"n":0`)))(t).Key
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range increments {
				d.await(func() error {
					err := increment(t.Context(), servers[i%2], key, i%3 == 0)
					if err != nil && listwatch.CodeOf(err) == listwatch.NotYet {
						return nil // it was written
					}
					return err
				})
			}
		})
	}
	for range 3 {
		d.exec(killSenders)
	}
	wg.Wait()
	first, second := d.list(servers[0]), d.list(servers[1])
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the servers differ: %s", diff)
	}
	if want := fmt.Sprintf(`"n":%d`, writers*increments); !strings.Contains(string(first[0].Data), want) {
		t.Errorf("got %s, want %s", first[0].Data, want)
	}
}

// The rules of collections hold: generated names, finalizers, quotas, generations.
func TestDocumentsObeyTheRulesOfCollections(t *testing.T) {
	d := newDatabase(t)
	spec := flagSpec
	spec.MaxObjects = 2
	c := testkit.Must(d.open(postgres.Options{}).Collection(spec))(t)
	o := testkit.Must(c.Create(t.Context(), []byte(
		`{"metadata":{"namespace":"a","generateName":"g-","finalizers":["example.com/x"]},"spec":{"on":true}}`)))(t)
	if !strings.HasPrefix(o.Key.Name, "g-") || !strings.Contains(string(o.Data), `"generation":1`) {
		t.Errorf("got %s, want a generated name and a generation", o.Data)
	}
	marked := testkit.Must(c.Delete(t.Context(), o.Key, listwatch.Preconditions{}))(t)
	if !strings.Contains(string(marked.Data), `"deletionTimestamp"`) {
		t.Errorf("got %s, want a deletionTimestamp", marked.Data)
	}
	testkit.Must(c.Patch(t.Context(), o.Key, listwatch.Patch{
		Type: listwatch.MergePatch, Data: []byte(`{"metadata":{"finalizers":null}}`),
	}))(t)
	if _, err := c.Get(t.Context(), o.Key); !errors.Is(err, listwatch.NotFound) {
		t.Errorf("after the last finalizer: got %v, want NotFound", err)
	}
	for i := range 3 {
		_, err := c.Create(t.Context(), flagNamed(fmt.Sprint("f", i), ""))
		if refused := i == 2; (err != nil) != refused || refused && !errors.Is(err, listwatch.Forbidden) {
			t.Errorf("create %d of 2: %v", i, err)
		}
	}
	spec.Kind, spec.TTL = "Lease", func([]byte) time.Duration { return time.Minute }
	leases := testkit.Must(d.open(postgres.Options{}).Collection(spec))(t)
	if _, err := leases.Create(t.Context(), flagNamed("x", "")); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("a time to live: got %v, want Unsupported", err)
	}
}

// Documents are rows that SQL can read and write. A collection that is declared later has the rows
// that were there.
func TestDocumentsAreRows(t *testing.T) {
	d := newDatabase(t)
	db, flags := d.flags(postgres.Options{})
	d.exec(`INSERT INTO listwatch_objects VALUES
		('flags', 'a', 'x', '{"metadata":{"name":"x","namespace":"a"}, "spec":{"on": true}}'),
		('colors', '', 'red', '{"kind":"Color","metadata":{"name":"red"}}')`)
	created := d.list(flags)
	if len(created) != 1 || created[0].Fields["spec.on"] != "true" {
		t.Fatalf("got %v, want the inserted row", created)
	}
	if _, err := db.Collection(flagSpec); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("a second declaration: got %v, want AlreadyExists", err)
	}
	if _, err := db.Collection(store.CollectionSpec{Plural: "odds"}); err != nil {
		t.Error(err)
	}
	colors := testkit.Must(db.Collection(store.CollectionSpec{Kind: "Color"}))(t)
	red := d.list(colors)
	if len(red) != 1 || red[0].Key.Name != "red" {
		t.Fatalf("got %v, want the color", red)
	}
	_ = db.Close() // always nil
	if _, err := db.Collection(store.CollectionSpec{Plural: "late"}); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("a collection after Close: got %v, want Unavailable", err)
	}
}

// A row that is not an object of its collection is hidden until SQL corrects it. All other rows are
// served, and every server shows the same events.
func TestRowsThatAreNoObjectsAreHidden(t *testing.T) {
	d := newDatabase(t)
	reports := make(chan string, 100)
	o := postgres.Options{Trace: &postgres.Trace{
		Lost: func(err error) { t.Error(err) },
		RowHidden: func(table, row string, reason error) {
			reports <- fmt.Sprint(table, ": ", row, ": ", reason)
		},
	}}
	first, early := d.flags(o)
	want := func(reason string) {
		t.Helper()
		if got, want := <-reports, "listwatch_objects, collection flags: "+reason; !strings.Contains(got, want) {
			t.Errorf("got the report %q, want %q", got, want)
		}
	}
	d.exec("ALTER TABLE listwatch_objects ALTER doc SET STORAGE EXTERNAL")
	w := testkit.Must(early.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: first.Version()}))(t)
	defer w.Close()
	for _, row := range []string{
		`'x', '{"metadata":{"name":"y","namespace":"a"}}'`, `'x', '7'`,
		`'x', '{"kind":"Color","metadata":{"name":"x","namespace":"a"}}'`,
		`'x', '{"metadata":{"name":"x"}}'`, `'x', '{"metadata":{"name":"x","namespace":"a","labels":7}}'`,
	} {
		d.exec("DELETE FROM listwatch_objects",
			"INSERT INTO listwatch_objects VALUES ('flags', 'a', 'good', '"+string(flagNamed("good", ""))+"')",
			"INSERT INTO listwatch_objects VALUES ('flags', 'a', "+row+")")
		want("a/x: ")
		if flags := d.list(early); len(flags) != 1 || flags[0].Key.Name != "good" {
			t.Errorf("with the row %s: got %v, want the other row", row, flags)
		}
	}
	if _, err := early.Create(t.Context(), flagNamed("x", "")); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("a create with the name of a hidden row: got %v, want AlreadyExists", err)
	}
	// An UPDATE does not send a large document that it does not change.
	d.exec(`UPDATE listwatch_objects SET doc = json_build_object('metadata', json_build_object('name', 'z',
		'namespace', 'a'), 'spec', json_build_object('on', repeat('x', 5000))) WHERE name = 'x'`)
	want("a/x: ")
	second, late := d.flags(o)
	want("a/x: ")
	if first.Stats().Hidden != 1 || second.Stats().Hidden != 1 {
		t.Errorf("%d and %d rows are hidden, want 1", first.Stats().Hidden, second.Stats().Hidden)
	}
	d.exec("UPDATE listwatch_objects SET name = 'z' WHERE name = 'x'")
	a, b := d.list(early), d.list(late)
	if len(a) != 2 || len(b) != 2 || string(a[1].Data) != string(b[1].Data) {
		t.Errorf("after the correction: got %v and %v, want the row", a, b)
	}
	if n := first.Stats().Hidden + second.Stats().Hidden; n != 0 {
		t.Errorf("after the correction, %d rows are hidden", n)
	}
	d.exec("UPDATE listwatch_objects SET doc = '8' WHERE name = 'z'", "TRUNCATE listwatch_objects")
	want("a/z: ")
	if flags := d.list(early); len(flags) != 0 || first.Stats().Hidden != 0 {
		t.Errorf("after TRUNCATE: got %v and %d hidden rows", flags, first.Stats().Hidden)
	}
	var got []string
	var batch [1]listwatch.Event
	for range 12 {
		testkit.Must(w.Next(t.Context(), batch[:]))(t)
		got = append(got, fmt.Sprint(batch[0].Type, " ", batch[0].Object.Key.Name))
	}
	if got := got[len(got)-4:]; !slices.Equal(got, []string{"ADDED good", "ADDED z", "DELETED z", "DELETED good"}) {
		t.Errorf("the last events are %q", got)
	}
}

// TRUNCATE of the table of documents deletes the objects of all collections, each at its own
// version.
func TestTruncateDeletesAllDocuments(t *testing.T) {
	d := newDatabase(t)
	db, flags := d.flags(postgres.Options{})
	colors := testkit.Must(db.Collection(store.CollectionSpec{Kind: "Color"}))(t)
	d.exec(`INSERT INTO listwatch_objects SELECT c, n, i::text, json_build_object('metadata',
			json_strip_nulls(json_build_object('name', i::text, 'namespace', nullif(n, ''))))
		FROM (VALUES ('flags', 'a'), ('colors', ''), ('others', '')) v(c, n), generate_series(1, 3) i`)
	from := d.list(flags)[0].Version
	watches := []listwatch.Watcher{}
	for _, c := range []*store.Collection{flags, colors} {
		w := testkit.Must(c.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: db.Version()}))(t)
		defer w.Close()
		watches = append(watches, w)
	}
	d.exec("TRUNCATE listwatch_objects")
	seen := map[listwatch.Version]bool{}
	for _, w := range watches {
		n := 0
		for e, err := range listwatch.All(t.Context(), w) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type != listwatch.Deleted || e.Version <= from || seen[e.Version] {
				t.Errorf("got %s %s at %d, want a delete at a version of its own", e.Type, e.Object.Key, e.Version)
			}
			seen[e.Version] = true
			if n++; n == 3 {
				break
			}
		}
	}
	others := testkit.Must(db.Collection(store.CollectionSpec{Plural: "others"}))(t)
	if n := len(d.list(others)); n != 0 {
		t.Errorf("the collection that is declared later has %d objects", n)
	}
}

// A union of a table and a collection of documents is one watch.
func TestDocumentsAndTablesAreOneWatch(t *testing.T) {
	d := newDatabase(t, orders)
	db := d.open(postgres.Options{Documents: "objects"}, postgres.Table{Name: "orders", Namespace: "tenant"})
	flags := testkit.Must(db.Collection(flagSpec))(t)
	rows := db.Table("orders", store.CollectionSpec{})
	union := testkit.Must(flags.Union(listwatch.Part{Source: flags}, listwatch.Part{Source: rows}))(t)
	w := testkit.Must(union.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: db.Version()}))(t)
	defer w.Close()
	d.exec("BEGIN", "INSERT INTO orders VALUES (1, 'a')",
		`INSERT INTO objects VALUES ('flags', 'a', 'x', '{"metadata":{"name":"x","namespace":"a"}}')`, "COMMIT")
	var got []string
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Object.Key.String()); len(got) == 2 {
			break
		}
	}
	if want := []string{"a/1", "a/x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A table that has other columns is refused. So is a role that may not create the table, with the
// statement for its owner. The table is not created if another one cannot be served.
func TestUnusableTablesOfDocumentsAreRefused(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE other (collection text, name text, doc json, PRIMARY KEY (collection, name))",
		"CREATE ROLE guest LOGIN REPLICATION")
	d.exec(fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO guest", d.url[strings.LastIndex(d.url, "=")+1:]))
	_, err := postgres.Open(t.Context(), d.url, postgres.Options{Documents: "other"})
	if err == nil || !strings.Contains(err.Error(), "not a table of documents") {
		t.Errorf("another table: got %v", err)
	}
	_, err = postgres.Open(t.Context(), strings.Replace(d.url, "user=postgres", "user=guest", 1), postgres.Options{})
	if err == nil || !strings.Contains(err.Error(), ": CREATE TABLE listwatch_objects") {
		t.Errorf("a role without rights: got %v", err)
	}
	o := postgres.Options{Documents: "objects"}
	const publish = "CREATE PUBLICATION \"listwatch\" FOR TABLE objects WITH (publish_via_partition_root = true)"
	if _, err := postgres.Open(t.Context(), d.url, o, postgres.Table{Name: "missing"}); err == nil {
		t.Error("a missing table: got no error")
	}
	if n := d.count("SELECT FROM pg_class WHERE oid = to_regclass('objects')"); n != 0 {
		t.Error("Open has created the table of documents, and then failed")
	}
	if f := findings(t, d.url, o)["publication"]; f.Remedy != publish {
		t.Errorf("the publication: got %+v, want the remedy %s", f, publish)
	}
	tables := d.open(postgres.Options{Publication: "mine"}, postgres.Table{Name: "other"})
	if _, err := tables.Collection(flagSpec); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("a DB of tables: got %v, want Unsupported", err)
	}
}

// A write does not wait for PostgreSQL to flush the commits of others, which may take long.
func TestWritesFlushTheirCommits(t *testing.T) {
	d := newDatabase(t)
	d.server.Configure("synchronous_commit=off", "wal_writer_delay=10s")
	d.connect()
	_, flags := d.flags(postgres.Options{})
	for i := range 5 {
		testkit.Must(flags.Create(t.Context(), flagNamed(fmt.Sprint("f", i), "")))(t)
	}
}

// A document that SQL moves to another collection keeps the values that the UPDATE does not send.
// Many moves in a short time do not make the table fail.
func TestLargeDocumentsAreMoved(t *testing.T) {
	d := newDatabase(t)
	db, flags := d.flags(postgres.Options{Trace: &postgres.Trace{
		Lost: func(err error) { t.Error(err) },
	}})
	flagged := flagSpec
	flagged.Plural = "banners"
	collections := []*store.Collection{flags, testkit.Must(db.Collection(flagged))(t)}
	d.exec("ALTER TABLE listwatch_objects ALTER doc SET STORAGE EXTERNAL")
	testkit.Must(flags.Create(t.Context(), flagNamed("x", fmt.Sprintf(`"text":%q`, strings.Repeat("x", 5000)))))(t)
	for i := range 7 {
		from, to := collections[i%2].Spec().Plural, collections[(i+1)%2].Spec().Plural
		d.exec(fmt.Sprintf("UPDATE listwatch_objects SET collection = '%s' WHERE collection = '%s'", to, from))
	}
	if n := len(d.list(collections[0])); n != 0 {
		t.Errorf("the collection that the document has left has %d objects", n)
	}
	moved := d.list(collections[1])
	if len(moved) != 1 || len(moved[0].Data) < 5000 {
		t.Errorf("got %v, want the document", moved)
	}
}
