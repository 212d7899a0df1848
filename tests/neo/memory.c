// The memory of the no-op GPU: one file, and buffers in it.
#include "noop_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static Buffer* buffers;
static uint32_t buffer_count = 1, buffer_room, first_free = 1;
static uint64_t next_offset;
static int memory_fd = -1;

int memory(void) {
  if (memory_fd < 0) {
    memory_fd = memfd_create("no-op GPU", MFD_CLOEXEC);
    if (memory_fd < 0 || ftruncate(memory_fd, FILE_BYTES) != 0) abort();
  }
  return memory_fd;
}

bool is_device(int fd) {
  struct stat of_fd, of_memory;
  return memory_fd >= 0 && fstat(fd, &of_fd) == 0 &&
         fstat(memory_fd, &of_memory) == 0 && of_fd.st_ino == of_memory.st_ino &&
         of_fd.st_dev == of_memory.st_dev;
}

Buffer* buffer_of(uint32_t handle) {
  const bool is_there = handle > 0 && handle < buffer_count && buffers[handle].is_open;
  return is_there ? &buffers[handle] : NULL;
}

uint32_t add_buffer(Buffer buffer) {
  uint32_t handle = first_free;
  while (handle < buffer_count && buffers[handle].is_open) handle++;
  first_free = handle + 1;
  if (handle == buffer_count) {
    buffer_count++;
    if (buffer_count > buffer_room) {
      buffer_room = 2 * buffer_count;
      buffers = realloc(buffers, buffer_room * sizeof *buffers);
      if (buffers == NULL) abort();
    }
  }
  buffer.is_open = true;
  buffers[handle] = buffer;
  return handle;
}

// No offset is used twice, so that memory is zero at first, as Linux's is.
uint32_t create_buffer(__u64* size_bytes) {
  *size_bytes = (*size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  const Buffer created = {.offset = next_offset, .size_bytes = *size_bytes};
  next_offset += *size_bytes;
  return add_buffer(created);
}

int close_buffer(uint32_t handle) {
  Buffer* const buffer = buffer_of(handle);
  if (buffer == NULL) return EINVAL;
  if (!buffer->is_user) {
    if (buffer->at != NULL) munmap(buffer->at, buffer->size_bytes);
    fallocate(memory(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)buffer->offset, (off_t)buffer->size_bytes);
  }
  buffer->is_open = false;
  if (handle < first_free) first_free = handle;
  return 0;
}

char* address_of(Buffer* buffer) {
  if (buffer->at == NULL) {
    buffer->at = mmap(NULL, buffer->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      memory(), (off_t)buffer->offset);
    if (buffer->at == MAP_FAILED) abort();
  }
  return buffer->at;
}
