// Address ranges that can be neither read nor written: see Note [Shadow addresses].
// Not thread-safe: memory.c calls it under its lock.

#ifndef XPURT_VIRTUAL_GPU_SHADOW_H_
#define XPURT_VIRTUAL_GPU_SHADOW_H_

#include <stdbool.h>
#include <stddef.h>

// A fresh range of `size` bytes; null if the address space is used up or limited.
void* reserve_shadow(size_t size, size_t alignment);
void release_shadow(const void* address);

// True for any address of the reserved ranges, also of released ones.
bool is_shadow(const void* address);

#endif  // XPURT_VIRTUAL_GPU_SHADOW_H_
