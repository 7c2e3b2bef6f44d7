package oidc_test

import (
	"fmt"
	"log"

	"github.com/listwatch/listwatch/oidc"
	"github.com/listwatch/listwatch/watchserver"
)

// The users of an identity provider, and other users by another Authenticator.
func ExampleNew() {
	provider := startIssuer() // in a program, for example https://id.example.com
	defer provider.Close()

	users, err := oidc.New(oidc.Options{Issuer: provider.URL, Audience: "flags"})
	if err != nil {
		log.Fatal(err)
	}
	server := &watchserver.Server{}
	server.Access.Authenticator = watchserver.FirstOf(users)

	user, err := server.Access.Authenticator(withToken(provider.token(nil)))
	fmt.Println(user.Name, user.Groups, err)
	// Output: ada-1 [writers] <nil>
}
