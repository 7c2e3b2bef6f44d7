package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
)

const ada, eve = "Bearer ada-token", "Bearer eve-token"

// startLimited runs serve with the users ada and eve.
func startLimited(t *testing.T, args ...string) *runningServer {
	t.Helper()
	return startServer(t, append(args, "--debug-addr", "127.0.0.1:0", "--token-file", writeFile(t, accessTokens))...)
}

// requireMetric waits until the metrics contain the given line.
func requireMetric(t *testing.T, s *runningServer, line string) {
	t.Helper()
	for late := time.After(testTimeout); ; {
		_, _, text := request(t, "GET", s.debug+"/metrics", "")
		if strings.Contains(text, "\n"+line+"\n") {
			return
		}
		select {
		case <-late:
			t.Fatalf("the metrics do not have %s", line)
		default:
		}
	}
}

// requireBusy requires that a request of ada is refused with 429, Retry-After and the metric of the
// limit, while a list of eve is served.
func requireBusy(t *testing.T, s *runningServer, limit, method, url, body string, header ...string) {
	t.Helper()
	code, got, text := request(t, method, s.http+url, body, append(header, "Authorization", ada)...)
	if code != http.StatusTooManyRequests || got.Get("Retry-After") == "" ||
		!strings.Contains(text, "TooManyRequests") {
		t.Fatalf("%s %s: got %d %v %s, want 429 with Retry-After", method, url, code, got, text)
	}
	requireMetric(t, s, `listwatch_requests_refused_total{code="429",reason="`+limit+`"} 1`)
	requireStatus(t, http.StatusOK, "GET", s.http+podsPath, "Authorization", eve)
}

// openWatch opens a watch of pods, and returns its lines.
func openWatch(t *testing.T, s *runningServer, header ...string) io.Reader {
	t.Helper()
	res := testkit.Get(t, s.http+podsPath+"?watch=true", header...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("open a watch: got %+v", res)
	}
	return res.Body
}

// requireEvent requires that a write of eve reaches a watch.
func requireEvent(t *testing.T, s *runningServer, watch io.Reader) {
	t.Helper()
	code, _, body := request(t, "POST", s.http+podsPath, `{"metadata":{"name":"news"}}`, "Authorization", eve)
	if code != http.StatusCreated {
		t.Fatalf("a write of eve: got %d %s, want 201", code, body)
	}
	if event, err := bufio.NewReader(watch).ReadString('\n'); err != nil || !strings.Contains(event, `"news"`) {
		t.Errorf("the watch of eve: got %q, %v, want the new pod", event, err)
	}
}

// startBody sends a request of ada whose body has the given size. It sends only the first bytes of
// the body. It returns a function that sends the rest and returns the response.
func startBody(t *testing.T, s *runningServer, name string, sent, size int) (finish func() string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	body := `{"metadata":{"name":"` + name + `"}}`
	body += strings.Repeat(" ", max(size-len(body), 0))
	fmt.Fprintf(c,
		"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		podsPath, ada, len(body), body[:sent])
	return func() string {
		_, _ = io.WriteString(c, body[sent:])
		response, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(response)
	}
}

func TestMaxConnectionsClosesTheNextOne(t *testing.T) {
	s := startLimited(t, "--max-connections", "2")
	watch := openWatch(t, s, "Authorization", eve)
	requireMetric(t, s, "listwatch_connections 1")
	requireMetric(t, s, "listwatch_connections_limit 2")
	var last net.Conn
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last = c
	}
	if n, err := last.Read(make([]byte, 1)); err == nil {
		t.Errorf("the third connection got %d bytes, want its end", n)
	}
	requireMetric(t, s, "listwatch_connections_refused_total 1")
	// Eve's watch keeps its connection. A write of eve would need a new connection, so this test
	// reads only the end of the watch.
	if code, _, _ := request(t, "GET", s.debug+"/debug/watches", ""); code != http.StatusOK {
		t.Errorf("the debug address: got %d, want 200", code)
	}
	last.Close()
	s.interrupt()
	if rest, err := io.ReadAll(watch); err != nil {
		t.Errorf("the watch of eve: got %q, %v, want a clean end", rest, err)
	}
}

func TestMaxWatchesRefusesTheNextOne(t *testing.T) {
	s := startLimited(t, "--max-watches", "2", "--max-watches-per-client", "-1")
	watch := openWatch(t, s, "Authorization", eve)
	openWatch(t, s, "Authorization", ada)
	requireBusy(t, s, "watches", "GET", podsPath+"?watch=true", "")
	requireMetric(t, s, "listwatch_watches_limit 2")
	requireEvent(t, s, watch)
}

func TestMaxWatchesPerClientSparesOthers(t *testing.T) {
	s := startLimited(t, "--max-watches-per-client", "1")
	openWatch(t, s, "Authorization", ada)
	requireBusy(t, s, "watches_per_client", "GET", podsPath+"?watch=true", "")
	requireEvent(t, s, openWatch(t, s, "Authorization", eve))
}

func TestTrustedProxiesNameTheClient(t *testing.T) {
	for _, c := range []struct {
		args  []string
		other int
	}{{[]string{"--trusted-proxies", "127.0.0.1"}, http.StatusOK}, {nil, http.StatusTooManyRequests}} {
		s := startServer(t, append(c.args, "--max-watches-per-client", "1", "--debug-addr", "127.0.0.1:0")...)
		openWatch(t, s, "X-Forwarded-For", "192.0.2.1")
		for client, want := range map[string]int{"192.0.2.1": http.StatusTooManyRequests, "192.0.2.2": c.other} {
			url := s.http + podsPath + "?watch=true&timeoutSeconds=1"
			code, header, body := request(t, "GET", url, "", "X-Forwarded-For", client)
			if code != want || (code != http.StatusOK) != (header.Get("Retry-After") != "") {
				t.Errorf("%q, a watch of %s: got %d %s, want %d", c.args, client, code, body, want)
			}
		}
	}
}

// requireSomeRefused sends many large writes of ada at the same time, until some of them are
// refused because of the given limit. Each takes its share of the limit when its body has arrived,
// and then waits for its turn to be parsed.
func requireSomeRefused(t *testing.T, s *runningServer, limit string) {
	t.Helper()
	body := `{"metadata":{"name":"large"},"x":[` + strings.Repeat("{},", 300_000) + `0]}`
	refused := 0
	for late := time.Now().Add(testTimeout); refused == 0 && time.Now().Before(late); {
		codes := make(chan int)
		for range 20 {
			go func() { // ends with the request
				code, header, _ := request(t, "POST", s.http+podsPath+"?dryRun=All", body, "Authorization", ada)
				if code == http.StatusTooManyRequests && header.Get("Retry-After") == "" {
					t.Error("429 without Retry-After")
				}
				codes <- code
			}()
		}
		for range 20 {
			switch code := <-codes; code {
			case http.StatusCreated:
			case http.StatusTooManyRequests:
				refused++
			default:
				t.Errorf("a write of ada: got %d, want 201 or 429", code)
			}
		}
	}
	requireMetric(t, s, fmt.Sprintf(`listwatch_requests_refused_total{code="429",reason="%s"} %d`, limit, refused))
	if code, _, body := request(t, "POST", s.http+podsPath, `{"metadata":{"name":"eve"}}`, "Authorization",
		eve); code != http.StatusCreated {
		t.Errorf("a write of eve: got %d %s, want 201", code, body)
	}
}

func TestMaxRequestsRefusesOneClient(t *testing.T) {
	s := startLimited(t, "--max-requests", "2")
	requireSomeRefused(t, s, "requests")
	requireMetric(t, s, "listwatch_request_seats 0")
	requireMetric(t, s, "listwatch_request_seats_limit 2")
}

// A client that has not sent its whole body, or that does not read the response, takes no seat from
// other clients.
func TestStalledClientsTakeNoSeats(t *testing.T) {
	s := startLimited(t, "--max-requests", "2", "--max-writes", "2", "--write-timeout", "1h")
	finish := startBody(t, s, "slow", 99, 100)
	requireMetric(t, s, "listwatch_request_memory_bytes 400")
	c := dialWithSmallBuffer(t, s)
	body := `{"metadata":{"name":"unread"},"data":"` + strings.Repeat("x", 1<<20) + `"}`
	fmt.Fprintf(c,
		"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", podsPath, ada, len(body), body)
	unread, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || unread.StatusCode != http.StatusCreated {
		t.Fatalf("the write whose response is not read: got %+v, %v, want 201", unread, err)
	}
	requireMetric(t, s, "listwatch_request_seats 0")
	requireMetric(t, s, "listwatch_writes_executing 0")
	if code, _, body := request(t, "POST", s.http+podsPath, `{"metadata":{"name":"second"}}`, "Authorization",
		ada); code != http.StatusCreated {
		t.Errorf("another write of ada: got %d %s, want 201", code, body)
	}
	if response := finish(); !strings.Contains(response, "201 Created") {
		t.Errorf("the slow write: got %s, want 201", response)
	}
	if err := c.SetReadBuffer(1 << 20); err != nil { // or reading takes seconds
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, unread.Body); err != nil {
		t.Errorf("the rest of the unread response: %v", err)
	}
}

func TestMemoryRefusesBodiesOfOneClient(t *testing.T) {
	s := startLimited(t, "--memory", "16MiB")
	finish := startBody(t, s, "slow", 1500<<10-1, 1500<<10) // what has arrived counts four times
	requireMetric(t, s, "listwatch_request_memory_bytes 6.144e+06")
	requireBusy(t, s, "memory", "POST", podsPath, largePod("large", 1500<<10))
	innocent := `{"metadata":{"name":"innocent"}}` + strings.Repeat(" ", 1500<<10)
	if code, _, body := request(t, "POST", s.http+podsPath, innocent, "Authorization",
		eve); code != http.StatusCreated {
		t.Errorf("the same body of eve: got %d %s, want 201", code, body)
	}
	if response := finish(); !strings.Contains(response, "201 Created") {
		t.Errorf("the first body: got %.500s, want 201", response)
	}
}

func TestMaxWritesRefusesOneClient(t *testing.T) {
	s := startLimited(t, "--max-writes", "2")
	requireSomeRefused(t, s, "writes")
	requireMetric(t, s, "listwatch_writes_executing 0")
	requireMetric(t, s, "listwatch_writes_executing_limit 2")
}
