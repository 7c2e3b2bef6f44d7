package kubetest

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
)

// converter returns the Converter of the objects of a definition for which a webhook is
// responsible.
func (a *api) converter(definition *listwatch.Object) kubeapi.Converter {
	return func(context.Context, []byte, string) ([]byte, error) {
		return nil, &listwatch.Error{
			Code:    listwatch.Corrupt,
			Message: fmt.Sprintf("conversion webhook for %s: the Env has no webhook server", definition.Key.Name),
		}
	}
}
