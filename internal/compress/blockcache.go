package compress

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// A BlockCache keeps compressed blocks, so that a text that many [BlockWriter] write is compressed
// once. It is safe for concurrent use.
type BlockCache struct {
	max   int64           // immutable
	seeds [2]maphash.Seed // immutable

	mu sync.Mutex
	// Guarded by mu.
	recent, older generation
	timer         *time.Timer // calls expire; nil if the cache is empty
}

// A block is dropped when it was not used for keepBlocks, or at the latest for twice that time.
const keepBlocks = time.Minute

// maxBlockShare is the share of the maximum that one block may take: an eighth.
const maxBlockShare = 8

// A generation holds the blocks that were used within one period.
type generation struct {
	blocks map[blockKey]*block
	bytes  int64
}

func (g *generation) add(key blockKey, b *block) {
	if g.blocks == nil {
		g.blocks = make(map[blockKey]*block)
	}
	g.blocks[key] = b
	g.bytes += b.size
}

// A blockKey identifies a text by two independent hashes with secret seeds.
type blockKey [2]uint64

type block struct {
	once sync.Once // makes data
	data []byte    // the checksum of the text, and the compressed text
	size int64     // the length of data, or zero before it is made; guarded by BlockCache.mu
}

// NewBlockCache returns a BlockCache that keeps at most limit bytes.
func NewBlockCache(limit int64) *BlockCache {
	return &BlockCache{max: limit, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// Used returns the number of bytes that c keeps.
func (c *BlockCache) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.bytes + c.older.bytes
}

// Compress returns the checksum of text and the compressed text, which the caller must not modify.
// Concurrent callers compress a text once.
func (c *BlockCache) Compress(text []byte) []byte {
	if int64(len(text)) > c.max/maxBlockShare {
		return compressBlock(text)
	}
	key := blockKey{maphash.Bytes(c.seeds[0], text), maphash.Bytes(c.seeds[1], text)}
	b := c.get(key)
	b.once.Do(func() {
		b.data = compressBlock(text)
		c.count(key, b)
	})
	return b.data
}

var blockScratch = sync.Pool{New: func() any { return new([]byte) }}

func compressBlock(text []byte) []byte {
	scratch := blockScratch.Get().(*[]byte)
	defer blockScratch.Put(scratch)
	*scratch = AppendDeflate(AppendChecksum((*scratch)[:0], text), text)
	return slices.Clone(*scratch)
}

// get returns the block with the given key. If c has none, get adds a block without data.
func (c *BlockCache) get(key blockKey) *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.recent.blocks[key]
	if b != nil {
		return b
	}
	if b = c.older.blocks[key]; b != nil {
		delete(c.older.blocks, key)
		c.older.bytes -= b.size
	} else {
		b = new(block)
	}
	c.recent.add(key, b)
	c.limit()
	if c.timer == nil {
		c.timer = time.AfterFunc(keepBlocks, c.expire)
	}
	return b
}

// count adds the size of b, whose data was just made.
func (c *BlockCache) count(key blockKey, b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range []*generation{&c.recent, &c.older} {
		if g.blocks[key] == b {
			b.size = int64(len(b.data))
			g.bytes += b.size
		}
	}
	c.limit()
}

// limit drops the older generation if the recent one would soon exceed half of the maximum. c.mu
// must be held.
func (c *BlockCache) limit() {
	if c.recent.bytes > c.max/2-c.max/maxBlockShare {
		c.older, c.recent = c.recent, generation{}
	}
}

// expire drops the blocks that were not used since its last call.
func (c *BlockCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.older, c.recent = c.recent, generation{}
	if c.timer = nil; len(c.older.blocks) > 0 {
		c.timer = time.AfterFunc(keepBlocks, c.expire)
	}
}
