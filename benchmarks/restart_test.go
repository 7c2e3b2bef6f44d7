package benchmarks

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/ports"
)

var (
	serverProgram = flag.String("listwatch", "", "the `program` listwatch, for BenchmarkRestart and BenchmarkRenewals")
	etcdProgram   = flag.String("etcd", "", "the `program` etcd, for BenchmarkRestart; if empty, etcd is left out")
	stormWhole    = flag.Int("stormwhole", 50, "the `number` of informers of all objects in BenchmarkRestart; "+
		"1,000 need 10 GiB of memory")
)

// BenchmarkRestart kills a server process and starts it again, and all clients return at once. It
// measures the cost, and the delay of a bystander, which writes objects to the same server. make
// storm builds the programs.
func BenchmarkRestart(b *testing.B) {
	if *serverProgram == "" {
		b.Skip("needs -listwatch; make storm builds it")
	}
	var table restartTable
	b.Run("bolt", func(b *testing.B) {
		benchmarkRestart(b, &table, "--data", filepath.Join(b.TempDir(), "storm.db"))
	})
	if *etcdProgram != "" {
		b.Run("etcd", func(b *testing.B) { benchmarkRestart(b, &table, "--etcd", startEtcd(b)) })
	}
	fmt.Print("\n", &table)
}

func benchmarkRestart(b *testing.B, table *restartTable, store ...string) {
	dir := b.TempDir()
	s := newServerProcess(b, dir, store...)
	s.start()
	things := &client.Remote{URL: "http://" + s.addr + "/" + thingsPath("storm")}
	createThings(b, things, stormObjects)
	variants := restarts(stateOf(b, things, ""), dir)
	for i := range variants {
		variants[i].prepare(b, s.addr)
	}
	if changeThings(b, things, stormObjects, 100); b.Failed() {
		return
	}
	var perWrite time.Duration // the processor time for a write of the bystander and its event
	restart := func(name string, clients int, storm func(b *testing.B, bystander *load) stormResult) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.kill()
				s.start()
				r := storm(b, startLoad(b, bystanderOf(thingsPath("quiet")), s.addr, 1))
				// The system reports processor time in steps of 10 ms.
				r.cpu = max(10*time.Millisecond, r.cpu-perWrite*time.Duration(r.seen.Events))
				table.add(b.Name(), clients, r)
			}
		})
	}
	restart("bystander-alone", 0, func(b *testing.B, bystander *load) stormResult {
		r := watchAlone(bystander, s.cpu)
		perWrite = r.cpu / time.Duration(r.seen.Events)
		return r
	})
	for _, v := range variants {
		restart(v.name, v.count, func(b *testing.B, bystander *load) stormResult {
			return runStorm(b, v.load(b, s.addr), bystander, 1, s.cpu)
		})
	}
}

// watchAlone lets a bystander write for some seconds without a storm.
func watchAlone(bystander *load, cpu func() time.Duration) (r stormResult) {
	time.Sleep(time.Second) // the first garbage collections belong to the start
	before := cpu()
	time.Sleep(3 * time.Second)
	r.cpu = (cpu() - before) * 4 / 3 // because the bystander writes for four seconds
	r.seen = bystander.observed()
	return r
}

// A restartVariant is a number of clients that return to a server that has restarted.
type restartVariant struct {
	name    string
	clients clients
	count   int
	kept    *load // a process that has lived on since prepare, or nil
}

// restarts returns the clients that had the given state when a server of 20,000 objects ended.
// Informers and pages select all objects or the objects of one node. Informers have copies in dir.
func restarts(since listwatch.State, dir string) (all []restartVariant) {
	add := func(name string, count int, c clients) {
		c.Path = thingsPath("storm")
		all = append(all, restartVariant{name: name, clients: c, count: count})
	}
	for _, r := range resumes(since)[2:] {
		add("watches-all/"+r.name, *stormClients, r.clients)
	}
	add2 := func(name string, count int, c clients) {
		add(name+"/watch-list", count, c)
		c.Copies = filepath.Join(dir, name)
		add(name+"/difference", count, c)
	}
	add2("informers-node", *stormClients, clients{Kind: "informer", PerNode: true})
	add2("informers-all", *stormWhole, clients{Kind: "informer"})
	if _, err := os.Stat("pages/node_modules"); err == nil {
		add2("pages-node", *stormClients, clients{Kind: "pages", PerNode: true})
		add2("pages-all", max(1, *stormClients/200), clients{Kind: "pages"})
	}
	return all
}

// prepare lets the clients save copies. All informers of everything begin with the same copy.
func (v *restartVariant) prepare(b *testing.B, addr string) {
	if v.clients.Copies == "" {
		return
	}
	if err := os.Mkdir(v.clients.Copies, 0o700); err != nil {
		b.Fatal(err)
	}
	count := v.count
	if v.clients.Kind == "informer" && !v.clients.PerNode {
		count = 1
	}
	l := startLoad(b, v.clients, addr, count)
	l.wait(1)
	l.stop()
	if v.clients.Kind == "pages" {
		v.kept = l
		return
	}
	for i := count; i < v.count; i++ {
		if err := os.Link(filepath.Join(v.clients.Copies, "0"),
			filepath.Join(v.clients.Copies, fmt.Sprint(i))); err != nil {
			b.Fatal(err)
		}
	}
}

// load returns a process with the clients. They have not sent anything yet.
func (v *restartVariant) load(b *testing.B, addr string) *load {
	if v.kept != nil {
		return v.kept
	}
	return prepareLoad(b, v.clients, addr, v.count)
}

// startEtcd starts an etcd and returns its URL.
func startEtcd(b *testing.B) string {
	b.Helper()
	port := ports.ReserveRange(b, 2)
	clientURL, peerURL := fmt.Sprint("http://127.0.0.1:", port), fmt.Sprint("http://127.0.0.1:", port+1)
	cmd := exec.Command(*etcdProgram, "--data-dir", b.TempDir(), "--log-outputs", "stdout",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster",
		"default="+peerURL,
		"--auto-compaction-retention", "1h", "--unsafe-no-fsync")
	if _, err := startProcess(b, cmd, "ready to serve client requests"); err != nil {
		b.Fatal(err)
	}
	return clientURL
}
