package tokenfile

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/watchserver"
)

const example = `secret,ada,1,"admins, writers"
"to,ken",bob,2
third,eve,,
`

func read(t *testing.T) *Tokens {
	t.Helper()
	return testkit.Must(Read(strings.NewReader(example)))(t)
}

func TestReadParsesKubernetesFormat(t *testing.T) {
	tokens := read(t)
	for token, want := range map[string]watchserver.User{
		"secret": {Name: "ada", UID: "1", Groups: []string{"admins", "writers"}},
		"to,ken": {Name: "bob", UID: "2"},
		"third":  {Name: "eve"},
	} {
		got, err := tokens.Authenticate(&http.Request{Header: http.Header{"Authorization": {"bearer  " + token}}})
		if err != nil {
			t.Fatal(err)
		}
		got.Recheck = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("token %s: %s", token, diff)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"a,b", "line 1: 2 fields"},
		{"a,b,c\n,b,c", "line 2: the token"},
		{"a,,c", "line 1: the token and the user's name"},
		{"a,b,c\na,d,e", "line 2: the token is also on an earlier line"},
		{`a,"b`, "quote"},
	} {
		_, err := Read(strings.NewReader(c.text))
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want Invalid with %q", c.text, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := Read(strings.NewReader(text))
		if (tokens == nil) == (err == nil) {
			t.Errorf("got tokens %v and error %v", tokens, err)
		}
	})
}

func TestReplacedTokensAreRechecked(t *testing.T) {
	tokens := read(t)
	user := func(token string) watchserver.User {
		u, err := tokens.Authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	ada, eve := user("secret"), user("third")
	if err := tokens.Replace(strings.NewReader("secret,ada,1,readers\nnew,eve,3\nhalf")); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("got %v for a bad file, want Invalid", err)
	}
	if u, err := eve.Recheck(); err != nil || u.Name != "eve" {
		t.Errorf("got %v, %v after a bad file, want eve", u, err)
	}
	if err := tokens.Replace(strings.NewReader("secret,ada,1,readers\nnew,eve,3\n")); err != nil {
		t.Fatal(err)
	}
	if u, err := ada.Recheck(); err != nil || !cmp.Equal(u.Groups, []string{"readers"}) {
		t.Errorf("got %v, %v; want ada with her new group", u, err)
	}
	if _, err := eve.Recheck(); !errors.Is(err, listwatch.Unauthorized) {
		t.Errorf("got %v for a token that is gone, want Unauthorized", err)
	}
}
