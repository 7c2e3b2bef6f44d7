package compress

import (
	"hash/maphash"
	"io"
	"sync"
)

// The sizes of the text of a block. The history of deflate has 32 KiB, so larger blocks would not
// be much smaller after compression.
const (
	minBlock = 32 << 10
	// endAfter is the mean number of bytes, after the first minBlock bytes, at which a block ends.
	endAfter = 96 << 10
	maxBlock = 256 << 10
	// maxKeptText is the size of the largest buffer for the text of a block that is reused.
	maxKeptText = 2 * maxBlock
)

// A BlockWriter compresses a text into one gzip member. It cuts the text into blocks and takes the
// compressed blocks from a cache.
//
// A block always ends at the end of a piece of text, which is the argument of one call of Write.
// The content of a piece determines whether a block ends after it. So texts with many common
// pieces, such as two lists that differ in one object, have most blocks in common.
//
// A BlockWriter is not safe for concurrent use.
type BlockWriter struct {
	w        io.Writer
	cache    *BlockCache
	text     *[]byte // the block so far
	checksum Checksum
	err      error // the first error of w
}

var blockTexts = sync.Pool{New: func() any { return new([]byte) }}

// NewWriter returns a BlockWriter that writes to w. Close must be called after the text.
func (c *BlockCache) NewWriter(w io.Writer) *BlockWriter {
	b := &BlockWriter{w: w, cache: c, text: blockTexts.Get().(*[]byte)}
	_, b.err = io.WriteString(w, GzipHeader)
	return b
}

// Write adds a piece of text.
func (b *BlockWriter) Write(piece []byte) (int, error) {
	*b.text = append(*b.text, piece...)
	if b.cache.EndsBlock(len(*b.text), piece) {
		b.flush()
	}
	return len(piece), b.err
}

// EndsBlock reports whether a block of the given size ends after piece, its last piece. The start
// of a piece stands for the whole, because the names and versions of objects are there.
func (c *BlockCache) EndsBlock(size int, piece []byte) bool {
	return size >= maxBlock || size >= minBlock &&
		maphash.Bytes(c.seeds[0], piece[:min(len(piece), 256)])%endAfter < uint64(len(piece))
}

// flush writes the block.
func (b *BlockWriter) flush() {
	if len(*b.text) == 0 || b.err != nil {
		return
	}
	data := b.cache.Compress(*b.text)
	*b.text = (*b.text)[:0]
	b.checksum.Add(data)
	_, b.err = b.w.Write(data[ChecksumSize:])
}

// Close writes the rest of the text and the end of the gzip member. It returns the first error of
// the underlying writer.
func (b *BlockWriter) Close() error {
	b.flush()
	if cap(*b.text) <= maxKeptText {
		*b.text = (*b.text)[:0]
		blockTexts.Put(b.text)
	}
	b.text = nil
	if b.err == nil {
		_, b.err = b.w.Write(b.checksum.AppendTrailer(nil))
	}
	return b.err
}
