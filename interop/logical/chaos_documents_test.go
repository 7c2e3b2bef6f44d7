//go:build unix

package logical

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// The collections of the chaos test. Counters are incremented and never deleted. Each ticket has a
// generated name and belongs to one writer. Notes and marks have no model: SQL moves them between
// the two collections.
var (
	counterSpec = store.CollectionSpec{Kind: "Counter"}.WithDefaults()
	ticketSpec  = store.CollectionSpec{Kind: "Ticket", Namespaced: true}.WithDefaults()
	noteSpec    = store.CollectionSpec{Kind: "Note", Namespaced: true}.WithDefaults()
	markSpec    = store.CollectionSpec{Kind: "Note", Plural: "marks", Namespaced: true}.WithDefaults()

	chaosCollections = []store.CollectionSpec{counterSpec, ticketSpec, noteSpec, markSpec}
)

const counters = 3

// chaosDocuments create the table of documents. The documents of notes are large, so that an UPDATE
// of the key does not send them.
var chaosDocuments = []string{
	`CREATE TABLE objects (collection text COLLATE "C", namespace text COLLATE "C", name text COLLATE "C",
		doc json NOT NULL, PRIMARY KEY (collection, namespace, name))`,
	"ALTER TABLE objects ALTER doc SET STORAGE EXTERNAL",
	fmt.Sprintf(`INSERT INTO objects SELECT 'counters', '', 'c' || i, json_build_object('kind', 'Counter',
		'metadata', json_build_object('name', 'c' || i), 'spec', json_build_object('n', 0, 'by', '{}'::json))
		FROM generate_series(0, %d) i`, counters-1),
}

// document returns the normalized JSON of an object without its version.
func document(o *listwatch.Object) string { return normalized(o.Data) }

func normalized(data []byte) string {
	var doc struct {
		Kind     string
		Metadata map[string]any
		Spec     any
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return err.Error()
	}
	delete(doc.Metadata, "resourceVersion")
	text, _ := json.Marshal(doc) // it was just decoded
	return string(text)
}

// shownDocuments returns the number of documents in a state.
func (d *database) shownDocuments(state map[string]map[listwatch.Key]string) (n int) {
	for _, c := range chaosCollections {
		n += len(state[c.QualifiedName()])
	}
	return n
}

// documents returns the rows of a collection, by key. It omits those whose document has another
// name.
func (d *database) documents(c store.CollectionSpec) map[listwatch.Key]string {
	d.Helper()
	all := map[listwatch.Key]string{}
	d.eachRow(func(key listwatch.Key, doc []byte) {
		if o, err := listwatch.ParseObject(doc); err == nil && o.Key == key {
			all[key] = normalized(doc)
		}
	}, "SELECT namespace, name, doc::text FROM objects WHERE collection = $1", c.QualifiedName())
	return all
}

// documentWriters write documents through the replicas and by SQL. Each of them knows what its
// writes must have done.
type documentWriters struct {
	*database
	backends []*backendWriter
	sql      []*sqlWriter
}

func newDocumentWriters(d *database, servers []*replica) *documentWriters {
	all := &documentWriters{database: d}
	for i := range 6 {
		all.backends = append(all.backends, &backendWriter{
			database: d, servers: servers, name: fmt.Sprintf("b%d", i), tickets: map[listwatch.Key]*ticket{},
		})
	}
	for i := range 2 {
		all.sql = append(all.sql, &sqlWriter{database: d, name: fmt.Sprintf("s%d", i), isDurable: i == 0})
	}
	return all
}

// run runs the writers until ctx ends.
func (w *documentWriters) run(ctx context.Context, running *sync.WaitGroup, seed uint64) {
	for i, b := range w.backends {
		running.Go(func() { b.run(ctx, rand.New(rand.NewPCG(seed, uint64(200+i)))) })
	}
	for i, s := range w.sql {
		running.Go(func() { s.run(ctx, rand.New(rand.NewPCG(seed, uint64(300+i)))) })
	}
}

// compare compares the rows with what the writers know, while no transaction runs.
func (w *documentWriters) compare() {
	w.Helper()
	found := w.documents(counterSpec)
	if len(found) != counters {
		w.Errorf("%d counters exist, want %d", len(found), counters)
	}
	for key, text := range found {
		c := parseCounter([]byte(text))
		sum := 0
		for _, n := range c.Spec.By {
			sum += n
		}
		if c.Spec.N != sum {
			w.Errorf("%s is %d, but its increments are %v", key.Name, c.Spec.N, c.Spec.By)
		}
		at := int(key.Name[1] - '0')
		for _, b := range w.backends {
			w.checkTally(b.name, key.Name, c.Spec.By[b.name], &b.counters[at])
		}
		for _, s := range w.sql {
			w.checkTally(s.name, key.Name, c.Spec.By[s.name], &s.counters[at])
		}
	}
	rows := w.documents(ticketSpec)
	for _, b := range w.backends {
		b.compareTickets(rows)
	}
}

func (w *documentWriters) checkTally(writer, object string, found int, t *tally) {
	w.Helper()
	if found < t.least || found > t.most {
		w.Errorf("%s has %d increments of %s, want %d to %d", object, found, writer, t.least, t.most)
	}
	*t = tally{found, found}
}

func (w *documentWriters) log() {
	for _, b := range w.backends {
		w.Logf("%s: %d writes succeeded, %d conflicted, %d have an unknown result, %d tickets", b.name, b.succeeded,
			b.conflicted, b.unknown, len(b.tickets))
	}
	for _, s := range w.sql {
		w.Logf("%s: %d transactions", s.name, s.succeeded)
	}
}

// A tally is what a writer knows of the number of its increments of an object.
type tally struct{ least, most int }

// A counter is an object that all writers increment.
type counter struct {
	Spec struct {
		N  int
		By map[string]int // by writer
	}
}

func parseCounter(data []byte) (c counter) {
	_ = json.Unmarshal(data, &c) // if it is malformed, the counter is wrong
	return c
}

// changed returns the JSON of an object, whose spec f has changed.
func changed(data []byte, f func(spec map[string]any)) []byte {
	var doc map[string]any
	_ = json.Unmarshal(data, &doc) // the object comes from a server
	f(doc["spec"].(map[string]any))
	text, _ := json.Marshal(doc) // it was just decoded
	return text
}

// A backendWriter writes through the collections of the replicas.
type backendWriter struct {
	*database
	servers  []*replica
	name     string
	counters [counters]tally
	tickets  map[listwatch.Key]*ticket
	lost     []string // the ids of tickets whose create has an unknown result
	created  int

	succeeded, conflicted, unknown int
}

// A ticket is an object that only its writer changes and deletes.
type ticket struct {
	id      string
	changes tally
	// isDeleted means that a delete succeeded, and mayBeDeleted that the result of one is unknown.
	isDeleted, mayBeDeleted bool
}

func (b *backendWriter) run(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil && !b.Failed() {
		switch rng.IntN(10) {
		case 0, 1:
			b.increment(ctx, rng)
		case 2, 3:
			b.replaceCounter(ctx, rng)
		case 4:
			b.create(ctx, rng)
		case 5, 6:
			b.change(ctx, rng)
		case 7:
			b.delete(ctx, rng)
		default:
			b.writeNote(ctx, rng)
		}
	}
}

// any returns a collection of any replica.
func (b *backendWriter) any(rng *rand.Rand, spec store.CollectionSpec) *store.Collection {
	return b.servers[rng.IntN(len(b.servers))].collection(spec.QualifiedName())
}

// result records the result of a write. It reports whether the write was acknowledged, and whether
// it may have been executed.
func (b *backendWriter) result(ctx context.Context, what string, err error) (acknowledged, executed bool) {
	switch {
	case err == nil:
		b.succeeded++
		return true, true
	case errors.Is(err, listwatch.Conflict):
		b.conflicted++
		return false, false
	case errors.Is(err, listwatch.Unavailable), errors.Is(err, listwatch.NotYet), ctx.Err() != nil:
		b.unknown++
		wait(ctx, 5*time.Millisecond)
	default:
		b.Errorf("%s: %s: %v", b.name, what, err)
	}
	return false, true
}

// increment increments a counter by an update without a precondition.
func (b *backendWriter) increment(ctx context.Context, rng *rand.Rand) {
	at := rng.IntN(counters)
	key := listwatch.Key{Name: fmt.Sprint("c", at)}
	o, err := b.any(rng, counterSpec).Update(ctx, key, listwatch.Preconditions{},
		func(old *listwatch.Object) ([]byte, error) { return changed(old.Data, b.addOne), nil })
	b.incremented(ctx, rng, at, o, err)
}

func (b *backendWriter) addOne(spec map[string]any) {
	by := spec["by"].(map[string]any)
	n, _ := by[b.name].(float64) // zero if it is missing
	by[b.name], spec["n"] = n+1, spec["n"].(float64)+1
}

// replaceCounter increments a counter by a replacement, which has the version that was read as its
// precondition. It reads any state of any replica, which may be out of date.
func (b *backendWriter) replaceCounter(ctx context.Context, rng *rand.Rand) {
	at := rng.IntN(counters)
	key := listwatch.Key{Name: fmt.Sprint("c", at)}
	page, err := b.any(rng, counterSpec).List(ctx, listwatch.Query{
		Selection: listwatch.Selection{Name: key.Name}, Start: listwatch.StartAny,
	})
	if err != nil || len(page.Items) != 1 {
		wait(ctx, 5*time.Millisecond)
		return
	}
	o, err := b.any(rng, counterSpec).Replace(ctx, key, changed(page.Items[0].Data, b.addOne))
	b.incremented(ctx, rng, at, o, err)
}

// incremented checks the response to an increment.
func (b *backendWriter) incremented(ctx context.Context, rng *rand.Rand, at int, o *listwatch.Object, err error) {
	t := &b.counters[at]
	acknowledged, executed := b.result(ctx, "increment", err)
	switch {
	case acknowledged:
		n := parseCounter(o.Data).Spec.By[b.name]
		if n <= t.least || n > t.most+1 {
			b.Errorf("%s: the response to an increment has %d, want %d to %d", b.name, n, t.least+1, t.most+1)
		}
		*t = tally{n, n}
		b.readBack(ctx, rng, counterSpec, o, func(read *listwatch.Object) bool {
			return read != nil && parseCounter(read.Data).Spec.By[b.name] == n
		})
	case executed:
		t.most++
	}
}

// readBack reads an object at any replica, not older than the response o to a write.
func (b *backendWriter) readBack(
	ctx context.Context, rng *rand.Rand, spec store.CollectionSpec, o *listwatch.Object,
	isWritten func(*listwatch.Object) bool,
) {
	q := listwatch.Query{Selection: listwatch.Selection{Namespace: o.Key.Namespace, Name: o.Key.Name}}
	if rng.IntN(2) == 0 {
		q.Start, q.Version, q.Match = listwatch.StartAt, o.Version, listwatch.MatchNotOlderThan
	}
	page, err := b.any(rng, spec).List(ctx, q)
	if err != nil {
		return
	}
	var read *listwatch.Object
	if len(page.Items) > 0 {
		read = page.Items[0]
	}
	if !isWritten(read) {
		b.Errorf("%s: after the response %s, a list not older than version %d (the newest if zero) has %v",
			b.name, o.Data, q.Version, read)
	}
}

// create creates a ticket.
func (b *backendWriter) create(ctx context.Context, rng *rand.Rand) {
	id := fmt.Sprintf("%s-%d", b.name, b.created)
	b.created++
	o, err := b.any(rng, ticketSpec).Create(ctx, fmt.Appendf(nil,
		`{"metadata":{"namespace":%q,"generateName":"%s-"},"spec":{"id":%q,"changes":0}}`,
		string(rune('a'+rng.IntN(2))), b.name, id))
	acknowledged, executed := b.result(ctx, "create", err)
	switch {
	case acknowledged:
		if got := parseTicket(o.Data); got.ID != id {
			b.Errorf("%s: the response to the create of %s is %s", b.name, id, o.Data)
		}
		b.tickets[o.Key] = &ticket{id: id}
		b.readBack(ctx, rng, ticketSpec, o, func(read *listwatch.Object) bool {
			return read != nil && parseTicket(read.Data).ID == id
		})
	case executed:
		b.lost = append(b.lost, id)
	}
}

type ticketContent struct {
	ID      string
	Changes int
	Stale   bool
}

func parseTicket(data []byte) ticketContent {
	var doc struct{ Spec ticketContent }
	_ = json.Unmarshal(data, &doc) // if it is malformed, the ticket is wrong
	return doc.Spec
}

// pick returns a ticket that was not deleted, or nil if there is none.
func (b *backendWriter) pick(rng *rand.Rand) (key listwatch.Key, t *ticket) {
	seen := 0
	for k, candidate := range b.tickets {
		if candidate.isDeleted || candidate.mayBeDeleted {
			continue
		}
		if seen++; rng.IntN(seen) == 0 {
			key, t = k, candidate
		}
	}
	return key, t
}

// read returns the newest state of a ticket, or nil if it cannot be read.
func (b *backendWriter) read(ctx context.Context, rng *rand.Rand, key listwatch.Key) *listwatch.Object {
	o, err := b.any(rng, ticketSpec).Get(ctx, key)
	if errors.Is(err, listwatch.NotFound) {
		b.Errorf("%s: ticket %s (%+v) is lost", b.name, key, b.tickets[key])
	}
	if err != nil {
		wait(ctx, 5*time.Millisecond)
		return nil
	}
	return o
}

// change changes a ticket, and then tries to replace it with the version before the change. SQL or
// a replica makes the change.
func (b *backendWriter) change(ctx context.Context, rng *rand.Rand) {
	key, t := b.pick(rng)
	if t == nil {
		return
	}
	before := b.read(ctx, rng, key)
	if before == nil {
		return
	}
	addOne := func(spec map[string]any) { spec["changes"] = spec["changes"].(float64) + 1 }
	if rng.IntN(2) == 0 {
		if err := b.changeBySQL(ctx, key); err != nil {
			t.changes.most++
			return
		}
		t.changes = tally{t.changes.least + 1, t.changes.most + 1}
	} else {
		o, err := b.any(rng, ticketSpec).Replace(ctx, key, changed(before.Data, addOne))
		acknowledged, executed := b.result(ctx, "change", err)
		if executed && !acknowledged {
			t.changes.most++
		}
		if !acknowledged {
			return
		}
		n := parseTicket(o.Data).Changes
		if n <= t.changes.least || n > t.changes.most+1 {
			b.Errorf("%s: the response to a change has %d, want %d to %d",
				b.name, n, t.changes.least+1, t.changes.most+1)
		}
		t.changes = tally{n, n}
		b.readBack(ctx, rng, ticketSpec, o, func(read *listwatch.Object) bool {
			return read != nil && parseTicket(read.Data).Changes == n
		})
	}
	stale := changed(before.Data, func(spec map[string]any) { spec["stale"] = true })
	if _, err := b.any(rng, ticketSpec).Replace(ctx, key, stale); err == nil {
		b.Errorf("%s: a replacement of %s with a version before the newest change succeeded", b.name, key)
	}
}

// changeBySQL changes a ticket by SQL. An error means that the result is unknown.
func (b *backendWriter) changeBySQL(ctx context.Context, key listwatch.Key) error {
	conn, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }() // the result of the statement is known
	_, err = conn.Exec(ctx, `SET synchronous_commit = on; UPDATE objects SET doc = jsonb_set(doc::jsonb,
		'{spec,changes}', to_jsonb((doc #>> '{spec,changes}')::int + 1))::json
		WHERE collection = 'tickets' AND namespace = '`+key.Namespace+`' AND name = '`+key.Name+`'`)
	return err
}

// delete deletes a ticket.
func (b *backendWriter) delete(ctx context.Context, rng *rand.Rand) {
	key, t := b.pick(rng)
	if t == nil {
		return
	}
	var p listwatch.Preconditions
	if rng.IntN(2) == 0 {
		if o := b.read(ctx, rng, key); o != nil {
			p.Version = o.Version
		}
	}
	if rng.IntN(3) == 0 {
		_, err := b.any(rng, ticketSpec).Create(ctx, fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q}}`,
			key.Namespace, key.Name))
		if err == nil {
			b.Errorf("%s: a second ticket with the name %s was created", b.name, key)
		}
	}
	o, err := b.any(rng, ticketSpec).Delete(ctx, key, p)
	acknowledged, executed := b.result(ctx, "delete", err)
	t.isDeleted, t.mayBeDeleted = acknowledged, executed
	if acknowledged {
		b.readBack(ctx, rng, ticketSpec, o, func(read *listwatch.Object) bool { return read == nil })
	}
}

// compareTickets compares the tickets of b with the rows.
func (b *backendWriter) compareTickets(rows map[listwatch.Key]string) {
	b.Helper()
	for key, t := range b.tickets {
		text, exists := rows[key]
		got := parseTicket([]byte(text))
		switch {
		case !exists && (t.isDeleted || t.mayBeDeleted):
			delete(b.tickets, key)
		case !exists || t.isDeleted:
			b.Errorf("%s: ticket %s (%+v) exists: %t", b.name, key, t, exists)
		case got.ID != t.id || got.Stale || got.Changes < t.changes.least || got.Changes > t.changes.most:
			b.Errorf("%s: ticket %s is %s, want %+v", b.name, key, text, t)
		default:
			t.changes, t.mayBeDeleted = tally{got.Changes, got.Changes}, false
		}
	}
	for key, text := range rows {
		if b.tickets[key] == nil && strings.HasPrefix(key.Name, b.name+"-") {
			b.adopt(key, parseTicket([]byte(text)).ID)
		}
	}
	b.lost = nil
}

// adopt records a ticket whose create had an unknown result.
func (b *backendWriter) adopt(key listwatch.Key, id string) {
	b.Helper()
	for i, lost := range b.lost {
		if lost == id {
			b.lost = append(b.lost[:i], b.lost[i+1:]...)
			b.tickets[key] = &ticket{id: id}
			return
		}
	}
	b.Errorf("%s: ticket %s with the id %s was deleted or created twice", b.name, key, id)
}

// writeNote makes any write of a note. SQL also writes notes.
func (b *backendWriter) writeNote(ctx context.Context, rng *rand.Rand) {
	spec := noteSpec
	if rng.IntN(2) == 0 {
		spec = markSpec
	}
	key := randomNote(rng)
	c := b.any(rng, spec)
	var err error
	switch rng.IntN(3) {
	case 0:
		_, err = c.Create(ctx, fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q},"spec":{"text":%q}}`,
			key.Namespace, key.Name, noteText(rng)))
	case 1:
		_, err = c.Update(ctx, key, listwatch.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
			return changed(old.Data, func(spec map[string]any) { spec[b.name] = rng.IntN(1000) }), nil
		})
	default:
		_, err = c.Delete(ctx, key, listwatch.Preconditions{})
	}
	if !errors.Is(err, listwatch.NotFound) && !errors.Is(err, listwatch.AlreadyExists) {
		b.result(ctx, "write of a note", err)
	}
}

func randomNote(rng *rand.Rand) listwatch.Key {
	return listwatch.Key{Namespace: string(rune('a' + rng.IntN(2))), Name: fmt.Sprint("n", rng.IntN(12))}
}

// noteText returns a text that is often too long for its row.
func noteText(rng *rand.Rand) string {
	return strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(6000))
}

// A sqlWriter writes documents by SQL, as a program that does not know the servers.
type sqlWriter struct {
	*database
	name      string
	isDurable bool // with synchronous_commit=on
	counters  [counters]tally
	succeeded int
}

func (s *sqlWriter) run(ctx context.Context, rng *rand.Rand) {
	var conn *pgx.Conn
	for ctx.Err() == nil {
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = s.connectWriter(ctx); err != nil {
				conn = nil
				wait(ctx, 10*time.Millisecond)
				continue
			}
		}
		if rng.IntN(2) == 0 {
			s.increment(ctx, conn, rng.IntN(counters))
		} else {
			s.writeNotes(ctx, conn, rng)
		}
		wait(ctx, time.Duration(rng.IntN(4))*time.Millisecond)
	}
	if conn != nil {
		_ = conn.Close(context.Background())
	}
}

func (s *sqlWriter) connectWriter(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return nil, err
	}
	mode := "off"
	if s.isDurable {
		mode = "on"
	}
	_, err = conn.Exec(ctx, "SET synchronous_commit = "+mode+"; SET lock_timeout = '2s'")
	return conn, err
}

func (s *sqlWriter) increment(ctx context.Context, conn *pgx.Conn, at int) {
	t := &s.counters[at]
	t.most++
	_, err := conn.Exec(ctx, fmt.Sprintf(`UPDATE objects SET doc = jsonb_set(jsonb_set(doc::jsonb, '{spec,by,%[1]s}',
		to_jsonb(coalesce((doc #>> '{spec,by,%[1]s}')::int, 0) + 1)), '{spec,n}',
		to_jsonb((doc #>> '{spec,n}')::int + 1))::json WHERE collection = 'counters' AND name = 'c%d'`, s.name, at))
	if err != nil {
		return
	}
	s.succeeded++
	if s.isDurable { // otherwise, a crash may have taken back any number of increments
		t.least++
	}
}

// writeNotes executes a transaction with a few changes of notes and marks.
func (s *sqlWriter) writeNotes(ctx context.Context, conn *pgx.Conn, rng *rand.Rand) {
	statements := []string{"BEGIN"}
	for range 1 + rng.IntN(4) {
		statements = append(statements, noteStatement(rng))
		if rng.IntN(6) == 0 {
			statements = append(statements, "SAVEPOINT s", noteStatement(rng), "ROLLBACK TO SAVEPOINT s")
		}
	}
	statements = append(statements, "COMMIT")
	if _, err := conn.Exec(ctx, strings.Join(statements, ";")); err != nil {
		_, _ = conn.Exec(ctx, "ROLLBACK") // errors are part of the test
		return
	}
	s.succeeded++
}

func noteStatement(rng *rand.Rand) string {
	key, to := randomNote(rng), randomNote(rng)
	from, into := "notes", "marks"
	if rng.IntN(2) == 0 {
		from, into = into, from
	}
	where := fmt.Sprintf(" WHERE collection = '%s' AND namespace = '%s' AND name = '%s'", from, key.Namespace, key.Name)
	free := fmt.Sprintf(" AND NOT EXISTS (SELECT FROM objects WHERE (collection, namespace, name) = ('%s', '%s', '%s'))",
		from, to.Namespace, to.Name)
	switch rng.IntN(9) {
	case 0, 1:
		return fmt.Sprintf(`INSERT INTO objects VALUES ('%s', '%s', '%s',
			'{"metadata":{"name":"%[3]s","namespace":"%[2]s"}, "spec":{"text":"%[4]s"}}') ON CONFLICT DO NOTHING`,
			from, key.Namespace, key.Name, noteText(rng))
	case 2, 3:
		return "UPDATE objects SET doc = jsonb_set(doc::jsonb, '{spec,sql}', to_jsonb(" + fmt.Sprint(rng.IntN(1000)) +
			"))::json" + where
	case 4: // the name of the document stays as it was
		return fmt.Sprintf("UPDATE objects SET collection = '%s'", into) + where + fmt.Sprintf(
			" AND NOT EXISTS (SELECT FROM objects WHERE (collection, namespace, name) = ('%s', '%s', '%s'))",
			into, key.Namespace, key.Name)
	case 5:
		return fmt.Sprintf(`UPDATE objects SET namespace = '%s', name = '%s', doc = jsonb_set(doc::jsonb, '{metadata}',
			'{"name":"%[2]s","namespace":"%[1]s"}')::json`, to.Namespace, to.Name) + where + free
	case 6:
		return "DELETE FROM objects" + where
	case 7: // hides the row, because its document has another name, or shows it again
		return fmt.Sprintf("UPDATE objects SET namespace = '%s', name = '%s'", to.Namespace, to.Name) + where + free
	default:
		return "UPDATE objects SET doc = doc" + where
	}
}
