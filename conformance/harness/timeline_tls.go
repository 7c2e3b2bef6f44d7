package harness

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"strings"
	"sync"
)

// A keyLog holds the secrets of TLS connections. With them, the timeline decrypts the bytes of
// these connections. A keyLog is the KeyLogWriter of a tls.Config.
type keyLog struct {
	mu      sync.Mutex
	secrets map[string][]byte // the keys are a label and a client random; guarded by mu
}

// Write adds a line in the format of SSLKEYLOGFILE: a label, the client random and a secret.
func (k *keyLog) Write(line []byte) (int, error) {
	if fields := strings.Fields(string(line)); len(fields) == 3 {
		if secret, err := hex.DecodeString(fields[2]); err == nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.secrets[fields[0]+" "+fields[1]] = secret
		}
	}
	return len(line), nil
}

// KeyLog returns a KeyLogWriter for a TLS server. A case needs it if the clients of that server are
// not this module's. The timeline can then show the bytes that these clients send.
func (e *Env) KeyLog() io.Writer { return &e.Timeline.keys }

func (k *keyLog) secret(label, random string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.secrets[label+" "+random]
}

// A tlsView decrypts the bytes of a TLS 1.3 connection. It is safe for concurrent use.
type tlsView struct {
	keys *keyLog

	mu sync.Mutex
	// Guarded by mu.
	random string // of the client, in hexadecimal
	suite  uint16
	// The keys of directions are the arrows that the timeline shows.
	directions map[string]*tlsDirection
}

// A tlsDirection holds the state of one direction of a connection.
type tlsDirection struct {
	label    string // of the secret
	buf      []byte // the beginning of a record, and records that cannot be decrypted yet
	aead     cipher.AEAD
	iv       []byte
	sequence uint64
}

func newTLSView(keys *keyLog) *tlsView {
	return &tlsView{keys: keys, directions: map[string]*tlsDirection{
		"→": {label: "CLIENT_TRAFFIC_SECRET_0"}, "←": {label: "SERVER_TRAFFIC_SECRET_0"},
	}}
}

// The types of TLS records (RFC 8446, section 5.1).
const (
	recordHandshake = 22
	recordData      = 23
)

// add adds bytes of one direction. It then calls show for each piece of data that can now be
// decrypted in either direction. The first argument of show is the arrow of the direction. add
// returns false if the connection cannot be decrypted because it uses TLS 1.2 or a cipher suite
// without AES.
func (v *tlsView) add(arrow string, p []byte, show func(arrow string, data []byte)) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.directions[arrow]
	d.buf = append(d.buf, p...)
	v.learn(d.buf)
	if v.suite != 0 && suites[v.suite].hash == nil {
		d.buf = nil
		return false
	}
	for _, arrow := range []string{"→", "←"} {
		for data := range v.directions[arrow].decrypt(v) {
			show(arrow, data)
		}
	}
	return true
}

// suites holds the cipher suites that a tlsView decrypts (RFC 8446, appendix B.4).
var suites = map[uint16]struct {
	hash    func() hash.Hash
	keySize int
}{0x1301: {sha256.New, 16}, 0x1302: {sha512.New384, 32}}

// learn reads the client random from a ClientHello, or the cipher suite from a ServerHello, at the
// beginning of p (RFC 8446, sections 4.1.2 and 4.1.3).
func (v *tlsView) learn(p []byte) {
	// The random follows the headers of the record and of the message, and the version.
	const randomAt, randomEnd = 11, 43
	if len(p) <= randomEnd || p[0] != recordHandshake {
		return
	}
	switch p[5] {
	case 1:
		v.random = hex.EncodeToString(p[randomAt:randomEnd])
	case 2:
		if at := randomEnd + 1 + int(p[randomEnd]); len(p) >= at+2 {
			v.suite = binary.BigEndian.Uint16(p[at:])
		}
	}
}

// decrypt returns the data of the complete records. It keeps records until their secret is known.
func (d *tlsDirection) decrypt(v *tlsView) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(d.buf) >= 5 {
			end := 5 + int(binary.BigEndian.Uint16(d.buf[3:]))
			if len(d.buf) < end {
				return
			}
			record := d.buf[:end]
			if record[0] == recordData && d.aead == nil && !d.open(v) {
				return
			}
			d.buf = d.buf[end:]
			if record[0] != recordData {
				continue // a part of the handshake
			}
			if data := d.data(record); len(data) > 0 && !yield(data) {
				return
			}
		}
	}
}

// open derives the keys of d, and reports whether the secret is known (RFC 8446, section 7.3).
func (d *tlsDirection) open(v *tlsView) bool {
	secret, suite := v.keys.secret(d.label, v.random), suites[v.suite]
	if secret == nil || suite.hash == nil {
		return false
	}
	expand := func(label string, n int) []byte {
		label = "tls13 " + label
		key, _ := hkdf.Expand(suite.hash, secret, "\x00"+string(rune(n))+string(rune(len(label)))+label+"\x00", n)
		return key
	}
	block, err := aes.NewCipher(expand("key", suite.keySize))
	if err != nil {
		return false
	}
	d.iv = expand("iv", 12)
	d.aead, err = cipher.NewGCM(block)
	return err == nil
}

// data returns the application data in a record. It returns nil for a handshake message, which is
// encrypted with other keys or has another type.
func (d *tlsDirection) data(record []byte) []byte {
	nonce := make([]byte, len(d.iv))
	binary.BigEndian.PutUint64(nonce[len(nonce)-8:], d.sequence)
	for i := range nonce {
		nonce[i] ^= d.iv[i]
	}
	plain, err := d.aead.Open(nil, nonce, record[5:], record[:5])
	if err != nil {
		return nil
	}
	d.sequence++
	for len(plain) > 0 && plain[len(plain)-1] == 0 {
		plain = plain[:len(plain)-1] // padding
	}
	if len(plain) == 0 || plain[len(plain)-1] != recordData {
		return nil
	}
	return plain[:len(plain)-1]
}
