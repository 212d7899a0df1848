// The commands of a submission. Their formats are in the hardware's manuals, "Intel
// Graphics for Linux: Programmer's Reference Manuals, Alchemist / DG2", volume 2.
#include "noop_gpu.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static uint64_t launch_count;

typedef struct {
  const struct drm_i915_gem_exec_object2* objects;
  uint32_t count;
} Submission;

uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const uint64_t per_s = TIMESTAMPS_PER_S;
  return (uint64_t)time.tv_sec * per_s + (uint64_t)time.tv_nsec * per_s / 1000000000;
}

// Memory at an address of the GPU, and how many bytes are left from there; null if
// there is none.
static char* mapped(const Submission* submission, uint64_t address, uint64_t* left) {
  address &= ADDRESSES - 1;
  for (uint32_t i = 0; i < submission->count; i++) {
    Buffer* const buffer = buffer_of(submission->objects[i].handle);
    const uint64_t start = submission->objects[i].offset & (ADDRESSES - 1);
    if (buffer == NULL || address < start || address - start >= buffer->size_bytes)
      continue;
    *left = buffer->size_bytes - (address - start);
    return address_of(buffer) + (address - start);
  }
  LOG("nothing is mapped at 0x%llx\n", (unsigned long long)address);
  return NULL;
}

static void store(const Submission* submission, uint64_t address, const void* from,
                  size_t size_bytes) {
  uint64_t left = 0;
  char* const to = mapped(submission, address, &left);
  if (to != NULL && left >= size_bytes) memcpy(to, from, size_bytes);
}

static void copy(const Submission* submission, uint64_t to, uint64_t from,
                 uint64_t size_bytes) {
  while (size_bytes > 0) {
    uint64_t to_left = 0, from_left = 0;
    char* const to_at = mapped(submission, to, &to_left);
    const char* const from_at = mapped(submission, from, &from_left);
    if (to_at == NULL || from_at == NULL) return;
    uint64_t part = size_bytes;
    if (part > to_left) part = to_left;
    if (part > from_left) part = from_left;
    memmove(to_at, from_at, part);
    to += part, from += part, size_bytes -= part;
  }
}

static uint64_t pair(const uint32_t* words) {
  return words[0] | (uint64_t)words[1] << 32;
}

// What a command stores when it is complete: a constant or the time, or nothing.
enum { STORES_CONSTANT = 1, STORES_TIME = 3 };
static void store_after(const Submission* submission, uint32_t operation,
                        const uint32_t* address, const uint32_t* constant) {
  const uint64_t value = operation == STORES_TIME ? now() : pair(constant);
  if (operation == STORES_CONSTANT || operation == STORES_TIME)
    store(submission, pair(address) & ~7ull, &value, sizeof value);
}

static void walk(const Submission* submission, const uint32_t* after) {
  launch_count++;
  if ((after[0] & 3) != STORES_TIME) {
    store_after(submission, after[0] & 3, after + 1, after + 3);
    return;
  }
  // The start and the end, by the context's clock and by the GPU's.
  const uint32_t time = (uint32_t)now();
  const uint32_t times[4] = {time, time, time + 1, time + 1};
  store(submission, pair(after + 1) & ~7ull, times, sizeof times);
}

static void copy_block(const Submission* submission, const uint32_t* words) {
  const uint32_t pixel_bytes = 1u << (words[0] >> 19 & 7);
  const uint32_t to_pitch = (words[1] & 0x3ffff) + 1;
  const uint32_t from_pitch = (words[8] & 0x3ffff) + 1;
  const uint32_t left = words[2] & 0xffff, top = words[2] >> 16;
  const uint32_t right = words[3] & 0xffff, bottom = words[3] >> 16;
  const uint32_t from_left = words[7] & 0xffff, from_top = words[7] >> 16;
  // Of images alone.
  if (words[1] >> 30 != 0 || words[8] >> 30 != 0 || pixel_bytes > 8) {
    LOG("a copy of tiled memory is not executed\n");
    return;
  }
  for (uint32_t row = 0; row + top < bottom; row++)
    copy(submission,
         pair(words + 4) + (uint64_t)(top + row) * to_pitch + left * pixel_bytes,
         pair(words + 9) + (uint64_t)(from_top + row) * from_pitch +
             from_left * pixel_bytes,
         (uint64_t)(right - left) * pixel_bytes);
}

// The upper bits of the first word.
enum { OF_MEMORY_INTERFACE = 0, OF_COPY_ENGINE = 2, OF_PIPELINE = 3 };
enum {
  MI_BATCH_BUFFER_END = 0x0a,
  MI_LAST_OF_ONE_WORD = 0x0f,
  MI_STORE_DATA_IMM = 0x20,
  MI_STORE_REGISTER_MEM = 0x24,
  MI_FLUSH_DW = 0x26,
  MI_BATCH_BUFFER_START = 0x31,
  XY_BLOCK_COPY_BLT = 0x41,
  PIPELINE_SELECT = 0x6904,
  COMPUTE_WALKER = 0x7208,
  PIPE_CONTROL = 0x7a00,
};

static uint64_t length_of(uint32_t header, uint32_t client, uint32_t opcode) {
  if (client == OF_MEMORY_INTERFACE && opcode <= MI_LAST_OF_ONE_WORD) return 1;
  return opcode == PIPELINE_SELECT ? 1 : (header & 0xff) + 2;
}

static void run(const Submission* submission, uint64_t address) {
  enum { DEPTH = 8, MOST_COMMANDS = 1 << 20 };
  uint64_t returns[DEPTH];
  int depth = 0;
  for (int i = 0; i < MOST_COMMANDS; i++) {
    uint64_t left = 0;
    const uint32_t* const words = (const void*)mapped(submission, address, &left);
    if (words == NULL) return;
    const uint32_t header = words[0], client = header >> 29;
    const uint32_t opcode = client == OF_MEMORY_INTERFACE ? header >> 23 & 0x3f
                            : client == OF_COPY_ENGINE    ? header >> 22 & 0x7f
                                                          : header >> 16;
    const uint64_t length = length_of(header, client, opcode);
    if (left < 4 * length) return;
    address += 4 * length;
    if (client == OF_COPY_ENGINE) {
      if (opcode == XY_BLOCK_COPY_BLT) copy_block(submission, words);
      continue;
    }
    switch (opcode) {
      case MI_BATCH_BUFFER_END:
        if (depth == 0) return;
        address = returns[--depth];
        break;
      case MI_BATCH_BUFFER_START: {
        const bool is_call = (header >> 22 & 1) != 0;
        if (is_call && depth < DEPTH) returns[depth++] = address;
        address = pair(words + 1) & ~3ull;
        break;
      }
      case MI_STORE_DATA_IMM: {
        const bool is_long = (header >> 21 & 1) != 0;
        store(submission, pair(words + 1) & ~3ull, words + 3, is_long ? 8 : 4);
        break;
      }
      // NEO stores the registers of clocks alone.
      case MI_STORE_REGISTER_MEM: {
        const uint32_t time = (uint32_t)now();
        store(submission, pair(words + 2) & ~3ull, &time, sizeof time);
        break;
      }
      case MI_FLUSH_DW:
        store_after(submission, header >> 14 & 3, words + 1, words + 3);
        break;
      case PIPE_CONTROL:
        store_after(submission, words[1] >> 14 & 3, words + 2, words + 4);
        break;
      case COMPUTE_WALKER:
        walk(submission, words + 26);
        break;
    }
  }
}

int execute(const struct drm_i915_gem_execbuffer2* submitted) {
  const Submission submission = {(const void*)(uintptr_t)submitted->buffers_ptr,
                                 submitted->buffer_count};
  if (submission.count == 0) return EINVAL;
  for (uint32_t i = 0; i < submission.count; i++)
    if (buffer_of(submission.objects[i].handle) == NULL) return ENOENT;
  const bool is_first = (submitted->flags & I915_EXEC_BATCH_FIRST) != 0;
  const uint32_t batch = is_first ? 0 : submission.count - 1;
  run(&submission, submission.objects[batch].offset + submitted->batch_start_offset);
  return 0;
}

// The kernels that were launched; tests call it.
uint64_t noop_gpu_launches(void) {
  pthread_mutex_lock(&mutex);
  const uint64_t count = launch_count;
  pthread_mutex_unlock(&mutex);
  return count;
}
