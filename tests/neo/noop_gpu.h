// A library for LD_PRELOAD: a no-op GPU for NEO, Intel's driver of its GPUs. The files
// in NOOP_GPU_ROOT hide those of the same name in /dev/dri and /sys/bus/pci/devices. A
// device file among them answers what NEO asks of Linux's driver i915, as an Arc A770
// would.
//
// Note [A GPU that runs no kernel]
// Without a GPU, NEO lists no device, so nothing of it is tested. With this library it
// lists one, builds programs by its own compiler, allocates memory, and writes the
// commands of launches and copies. A submission is complete when the ioctl returns. Of
// its commands run() executes those that store a constant or the time, by which NEO
// learns that work is complete, and the copy engine's, so what is copied to the device
// and back is right. A kernel changes no memory: results are wrong by design, and no
// test may look at them.
//
// All memory of the device is one sparse file in memory, and a device file is a
// descriptor of it. So mmap() works as it is: the offset of a buffer is that in this
// file.
//
// Rejected: EnableNullHardware of NEO, which is for Windows: tags start at their
// maximum, and then the order of events is lost. Rejected: Mesa's drm-shim, whose
// library for i915 Debian does not package.
#pragma once

#define _GNU_SOURCE
#include <dlfcn.h>
#include <drm/i915_drm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// An Arc A770.
enum {
  DEVICE_ID = 0x56a0,
  REVISION = 8,
  SLICES = 8,
  SUBSLICES_PER_SLICE = 4,
  EUS_PER_SUBSLICE = 16,
  THREADS_PER_EU = 8,
  LOCAL_MEMORY_KIB = 64,
  L3_BANK_KIB = 512,
  TIMESTAMPS_PER_S = 19200000,
};
static const uint64_t LOCAL_BYTES = 16ull << 30, SYSTEM_BYTES = 16ull << 30;
static const uint64_t ADDRESSES = 1ull << 48, PAGE_BYTES = 64 << 10;
static const off_t FILE_BYTES = (off_t)1 << 46;

// The C library's function of a name that this library defines.
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// NOOP_GPU_LOG=1 prints what is not answered.
#define LOG(...) \
  if (getenv("NOOP_GPU_LOG") != NULL) fprintf(stderr, "no-op GPU: " __VA_ARGS__)

typedef struct {
  uint64_t offset, size_bytes;
  char* at;  // null until address_of() needs it
  bool is_user, is_open;
} Buffer;

// Guards all that follows.
extern pthread_mutex_t mutex;

// The file of all memory; the descriptor of it that a device file is.
int memory(void);
bool is_device(int fd);

// A handle is an index; 0 is none. Null if there is no such buffer.
Buffer* buffer_of(uint32_t handle);
uint32_t add_buffer(Buffer buffer);
uint32_t create_buffer(__u64* size_bytes);  // rounded up to pages
int close_buffer(uint32_t handle);          // the error, or 0
char* address_of(Buffer* buffer);

// In ticks of the device.
uint64_t now(void);

// Runs the commands of a submission. Returns the error, or 0.
int execute(const struct drm_i915_gem_execbuffer2* submitted);
