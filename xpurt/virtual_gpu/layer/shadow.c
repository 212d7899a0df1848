#define _GNU_SOURCE
#include "shadow.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

// Ranges are cut one after the other from large reserved chunks. A chunk is returned to
// the system when it is used up and none of its ranges is alive.
typedef struct {
  char* base;
  size_t size;
  size_t used;
  size_t alive;  // ranges
} Chunk;

static const size_t CHUNK_BYTES = (size_t)64 << 30;
static const size_t PAGE_BYTES = 4096;

static Chunk* chunks;  // ranges are cut from the last one
static size_t chunk_count;

static Chunk* chunk_of(const void* address) {
  for (size_t i = chunk_count; i-- > 0;)
    if ((const char*)address >= chunks[i].base &&
        (const char*)address < chunks[i].base + chunks[i].size)
      return &chunks[i];
  return NULL;
}

static bool add_chunk(size_t size) {
  Chunk* const grown = realloc(chunks, (chunk_count + 1) * sizeof *chunks);
  if (grown == NULL) return false;
  chunks = grown;
  void* const base =
      mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  madvise(base, size, MADV_DONTDUMP);
  chunks[chunk_count++] = (Chunk){.base = base, .size = size};
  return true;
}

static void* cut(Chunk* chunk, size_t size, size_t alignment) {
  const uintptr_t start =
      ((uintptr_t)chunk->base + chunk->used + alignment - 1) / alignment * alignment;
  const size_t end = start - (uintptr_t)chunk->base + size;
  if (end > chunk->size) return NULL;
  chunk->used = end;
  chunk->alive++;
  return (void*)start;
}

void* reserve_shadow(size_t size, size_t alignment) {
  if (alignment < PAGE_BYTES) alignment = PAGE_BYTES;
  // One page more than needed, so that the end of one range is not the start of the
  // next.
  const size_t padded = (size / PAGE_BYTES + 2) * PAGE_BYTES;
  void* range =
      chunk_count == 0 ? NULL : cut(&chunks[chunk_count - 1], padded, alignment);
  if (range == NULL && padded < SIZE_MAX / 4) {
    const size_t wanted = padded + alignment;
    // A limit on the address space (ulimit -v) may allow no more than this range needs.
    if (!add_chunk(wanted > CHUNK_BYTES ? wanted : CHUNK_BYTES) && !add_chunk(wanted))
      return NULL;
    range = cut(&chunks[chunk_count - 1], padded, alignment);
  }
  return range;
}

void release_shadow(const void* address) {
  Chunk* const chunk = chunk_of(address);
  if (chunk == NULL || --chunk->alive > 0 || chunk == &chunks[chunk_count - 1]) return;
  munmap(chunk->base, chunk->size);
  const size_t index = (size_t)(chunk - chunks);
  for (size_t i = index; i + 1 < chunk_count; i++) chunks[i] = chunks[i + 1];
  chunk_count--;
}

bool is_shadow(const void* address) {
  return chunk_of(address) != NULL;
}
