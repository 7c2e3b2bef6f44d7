package compress

import (
	"encoding/binary"
	"hash/crc32"
)

// GzipHead is the header of a member: deflate, no name, no time, the fastest level, an unknown system (RFC 1952, section 2.3).
const GzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"

// A Sum is the check of a member whose data comes in parts: its CRC-32 and its length. The parts' own checks are made once, by
// [AppendSum], and added for each stream, which takes a multiplication instead of a look at the data. The zero Sum is that of
// nothing.
type Checksum struct{ crc, size uint32 }

// SumBytes is how many bytes [AppendSum] appends.
const ChecksumSize = 12

// AppendSum appends what [Sum.Add] wants to know about p.
func AppendChecksum(dst, p []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(p))
	dst = binary.LittleEndian.AppendUint32(dst, shiftOf(len(p)))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(p)))
}

// Add adds the part of which [AppendSum] has appended part.
func (s *Checksum) Add(part []byte) {
	_ = part[ChecksumSize-1]
	s.crc = times(s.crc, binary.LittleEndian.Uint32(part[4:])) ^ binary.LittleEndian.Uint32(part)
	s.size += binary.LittleEndian.Uint32(part[8:])
}

// AppendTail appends the end of a member whose data has the sum s: a final block without data, which is two bytes, and the check.
func (s Checksum) AppendTrailer(dst []byte) []byte {
	dst = append(dst, 3, 0)
	dst = binary.LittleEndian.AppendUint32(dst, s.crc)
	return binary.LittleEndian.AppendUint32(dst, s.size)
}

// CRC-32 is a remainder of polynomials over GF(2): that of A followed by n bytes B is crc(A)·x^8n + crc(B). What crc32 does before and
// after, to invert the bits, cancels out. In a reversed uint32 the highest bit is the coefficient of x^0.
const one = 1 << 31

// times returns a·b modulo the polynomial.
func times(a, b uint32) (product uint32) {
	for range 32 {
		product ^= b & -(a >> 31)
		a <<= 1
		b = b>>1 ^ crc32.IEEE&-(b&1) // b·x
	}
	return product
}

// shiftOf returns x^8n modulo the polynomial.
func shiftOf(n int) uint32 {
	shift, square := uint32(one), uint32(one>>8)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = times(shift, square)
		}
		square = times(square, square)
	}
	return shift
}
