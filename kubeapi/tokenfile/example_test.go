package tokenfile_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/tokenfile"
)

func ExampleTokens_Authenticate() {
	tokens, err := tokenfile.Read(strings.NewReader(`s3cret,ada,1,"readers,writers"`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var api kubeapi.Handler
	api.Server.Access.Authenticator = tokens.Authenticate
	// A Handler calls its Authenticator; these calls stand for requests.
	for _, token := range []string{"s3cret", "guess"} {
		user,
			err := api.Server.Access.Authenticator(
			&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
		fmt.Println(user.Name, user.Groups, err)
	}
	// Output:
	// ada [readers writers] <nil>
	//  [] unauthorized: the bearer token is unknown
}
