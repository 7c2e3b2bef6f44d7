package adapters

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/listwatch/listwatch"
)

// untestable returns an error for a server that cannot be tested, with advice if possible.
func untestable(where string, err error) error {
	code, advice := listwatch.CodeOf(err), ""
	_, refused := errors.AsType[*net.OpError](err)
	switch {
	case code == listwatch.Unauthorized:
		advice = "; pass a token or a client certificate"
	case code == listwatch.Forbidden:
		advice = "; the credentials lack permissions that the cases need"
	case isUntrusted(err):
		advice = "; pass its CA, or disable verification"
	case refused:
		advice = "; is it running?"
	}
	return &listwatch.Error{Code: code, Message: where + " cannot be tested" + advice, Err: err}
}

func invalidf(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}

func isUntrusted(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted
}
