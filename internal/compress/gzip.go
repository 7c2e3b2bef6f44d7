package compress

import (
	"encoding/binary"
	"hash/crc32"
)

// GzipHeader is the header of a member: deflate, no name, no time, the fastest level, an unknown
// operating system (RFC 1952, section 2.3).
const GzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"

// A Checksum is the CRC-32 and the length of a gzip member that is sent in parts. [AppendChecksum]
// computes the checksum of a part once. [Checksum.Add] adds it to the checksum of each stream, with
// one multiplication and without reading the data again. The zero Checksum is the checksum of no
// data.
type Checksum struct{ crc, size uint32 }

// ChecksumSize is the number of bytes that [AppendChecksum] appends.
const ChecksumSize = 12

// AppendChecksum appends the encoded checksum of p, for [Checksum.Add].
func AppendChecksum(dst, p []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(p))
	dst = binary.LittleEndian.AppendUint32(dst, powerOf(len(p)))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(p)))
}

// Add adds the next part of the member. part is the result of [AppendChecksum].
func (c *Checksum) Add(part []byte) {
	_ = part[ChecksumSize-1]
	c.crc = multiply(c.crc, binary.LittleEndian.Uint32(part[4:])) ^ binary.LittleEndian.Uint32(part)
	c.size += binary.LittleEndian.Uint32(part[8:])
}

// AppendTrailer appends the end of a member with the checksum c: a final block of two bytes
// without data, then the CRC-32 and the length.
func (c Checksum) AppendTrailer(dst []byte) []byte {
	dst = append(dst, 3, 0)
	dst = binary.LittleEndian.AppendUint32(dst, c.crc)
	return binary.LittleEndian.AppendUint32(dst, c.size)
}

// A CRC-32 is the remainder of a division of polynomials over GF(2). If B has n bytes, the
// CRC of A followed by B is crc(A)·x^8n + crc(B). The inversions before and after, which
// package crc32 performs, cancel out. The bits of the uint32 are reversed: the highest bit
// is the coefficient of x^0.
const one = 1 << 31

// multiply returns a·b modulo the polynomial.
func multiply(a, b uint32) (product uint32) {
	for range 32 {
		product ^= b & -(a >> 31)
		a <<= 1
		b = b>>1 ^ crc32.IEEE&-(b&1) // multiplies b by x
	}
	return product
}

// powerOf returns x^8n modulo the polynomial.
func powerOf(n int) uint32 {
	power, square := uint32(one), uint32(one>>8)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return power
}
