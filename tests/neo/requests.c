// What NEO asks of the driver i915.
#include "noop_gpu.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

static int get_param(const struct drm_i915_getparam* asked) {
  switch (asked->param) {
    case I915_PARAM_CHIPSET_ID:
      *asked->value = DEVICE_ID;
      return 0;
    case I915_PARAM_REVISION:
      *asked->value = REVISION;
      return 0;
    case I915_PARAM_CS_TIMESTAMP_FREQUENCY:
      *asked->value = TIMESTAMPS_PER_S;
      return 0;
    case I915_PARAM_HAS_SCHEDULER:
      *asked->value = I915_SCHEDULER_CAP_ENABLED | I915_SCHEDULER_CAP_PRIORITY |
                      I915_SCHEDULER_CAP_PREEMPTION;
      return 0;
    default:
      LOG("parameter %d is not answered\n", asked->param);
      return EINVAL;
  }
}

static size_t topology(char* out) {
  enum {
    SLICE_BYTES = (SLICES + 7) / 8,
    SUBSLICE_BYTES = (SUBSLICES_PER_SLICE + 7) / 8,
    EU_BYTES = (EUS_PER_SUBSLICE + 7) / 8,
    EU_OFFSET = SLICE_BYTES + SLICES * SUBSLICE_BYTES,
    ALL_BYTES = EU_OFFSET + SLICES * SUBSLICES_PER_SLICE * EU_BYTES,
  };
  struct drm_i915_query_topology_info* const info = (void*)out;
  info->max_slices = SLICES;
  info->max_subslices = SUBSLICES_PER_SLICE;
  info->max_eus_per_subslice = EUS_PER_SUBSLICE;
  info->subslice_offset = SLICE_BYTES;
  info->subslice_stride = SUBSLICE_BYTES;
  info->eu_offset = EU_OFFSET;
  info->eu_stride = EU_BYTES;
  memset(info->data, (1 << SLICES) - 1, SLICE_BYTES);
  memset(info->data + SLICE_BYTES, (1 << SUBSLICES_PER_SLICE) - 1,
         EU_OFFSET - SLICE_BYTES);
  memset(info->data + EU_OFFSET, 0xff, ALL_BYTES - EU_OFFSET);
  return sizeof *info + ALL_BYTES;
}

static size_t memory_regions(char* out) {
  struct drm_i915_query_memory_regions* const info = (void*)out;
  info->num_regions = 2;
  info->regions[0].region.memory_class = I915_MEMORY_CLASS_SYSTEM;
  info->regions[0].probed_size = info->regions[0].unallocated_size = SYSTEM_BYTES;
  info->regions[1].region.memory_class = I915_MEMORY_CLASS_DEVICE;
  info->regions[1].probed_size = info->regions[1].unallocated_size = LOCAL_BYTES;
  info->regions[1].probed_cpu_visible_size = LOCAL_BYTES;
  info->regions[1].unallocated_cpu_visible_size = LOCAL_BYTES;
  return sizeof *info + 2 * sizeof info->regions[0];
}

static size_t engines(char* out) {
  static const uint16_t classes[] = {I915_ENGINE_CLASS_RENDER, I915_ENGINE_CLASS_COPY,
                                     I915_ENGINE_CLASS_COMPUTE};
  struct drm_i915_query_engine_info* const info = (void*)out;
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
    info->engines[info->num_engines++].engine.engine_class = classes[i];
  return sizeof *info + info->num_engines * sizeof info->engines[0];
}

// The firmware's table: each entry is a key, the length of the value, and the value.
static size_t hardware(char* out) {
  enum { GDDR6 = 4 };
  static const uint32_t entries[][2] = {
      {1, SLICES},
      {2, SLICES * SUBSLICES_PER_SLICE},
      {3, EUS_PER_SUBSLICE},
      {11, GDDR6},
      {15, THREADS_PER_EU},
      {64, L3_BANK_KIB},
      {65, LOCAL_MEMORY_KIB},
  };
  enum { COUNT = sizeof entries / sizeof entries[0] };
  uint32_t* const words = (void*)out;
  for (int i = 0; i < COUNT; i++) {
    words[3 * i] = entries[i][0];
    words[3 * i + 1] = 1;
    words[3 * i + 2] = entries[i][1];
  }
  return 3 * COUNT * sizeof *words;
}

static size_t answer_query(uint64_t id, char* out) {
  switch (id) {
    case DRM_I915_QUERY_TOPOLOGY_INFO:
      return topology(out);
    case DRM_I915_QUERY_ENGINE_INFO:
      return engines(out);
    case DRM_I915_QUERY_MEMORY_REGIONS:
      return memory_regions(out);
    case DRM_I915_QUERY_HWCONFIG_BLOB:
      return hardware(out);
    default:
      LOG("query %llu is not answered\n", (unsigned long long)id);
      return 0;
  }
}

static int query(const struct drm_i915_query* asked) {
  struct drm_i915_query_item* const items = (void*)(uintptr_t)asked->items_ptr;
  for (uint32_t i = 0; i < asked->num_items; i++) {
    _Alignas(8) char answer[2048] = {0};
    const int size_bytes = (int)answer_query(items[i].query_id, answer);
    const int room = items[i].length;
    items[i].length =
        size_bytes == 0 || (room > 0 && room < size_bytes) ? -EINVAL : size_bytes;
    if (items[i].length > 0 && room > 0)
      memcpy((void*)(uintptr_t)items[i].data_ptr, answer, (size_t)size_bytes);
  }
  return 0;
}

static int version(struct drm_version* asked) {
  static const char name[] = "i915";
  const size_t room = asked->name_len, length = sizeof name - 1;
  if (asked->name != NULL) memcpy(asked->name, name, room < length ? room : length);
  asked->name_len = length;
  asked->date_len = asked->desc_len = 0;
  asked->version_major = 1;
  asked->version_minor = 6;
  asked->version_patchlevel = 0;
  return 0;
}

static int get_context_param(struct drm_i915_gem_context_param* asked) {
  switch (asked->param) {
    case I915_CONTEXT_PARAM_GTT_SIZE:
      asked->value = ADDRESSES;
      return 0;
    case I915_CONTEXT_PARAM_PERSISTENCE:
      asked->value = 1;
      return 0;
    default:
      LOG("parameter %d of a context is not answered\n", (int)asked->param);
      return EINVAL;
  }
}

// It is in one of the regions; which one makes no difference here.
static int create_in_region(struct drm_i915_gem_create_ext* asked) {
  const struct i915_user_extension* each = (const void*)(uintptr_t)asked->extensions;
  for (; each != NULL; each = (const void*)(uintptr_t)each->next_extension)
    if (each->name != I915_GEM_CREATE_EXT_MEMORY_REGIONS) return EINVAL;
  asked->handle = create_buffer(&asked->size);
  return 0;
}

static int wrap_user_memory(struct drm_i915_gem_userptr* asked) {
  const Buffer user = {.size_bytes = asked->user_size,
                       .at = (char*)(uintptr_t)asked->user_ptr,
                       .is_user = true};
  asked->handle = add_buffer(user);
  return 0;
}

static int get_offset(struct drm_i915_gem_mmap_offset* asked) {
  const Buffer* const buffer = buffer_of(asked->handle);
  if (buffer == NULL || buffer->is_user) return ENOENT;
  asked->offset = buffer->offset;
  return 0;
}

static int get_reset_stats(struct drm_i915_reset_stats* asked) {
  asked->reset_count = asked->batch_active = asked->batch_pending = 0;
  return 0;
}

// The error, or 0.
static int answer(unsigned long request, void* asked) {
  static uint32_t last_id;
  switch (request) {
    case DRM_IOCTL_VERSION:
      return version(asked);
    case DRM_IOCTL_I915_GETPARAM:
      return get_param(asked);
    case DRM_IOCTL_I915_QUERY:
      return query(asked);
    case DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM:
      return get_context_param(asked);
    case DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM:
    case DRM_IOCTL_I915_GEM_CONTEXT_DESTROY:
    case DRM_IOCTL_I915_GEM_VM_DESTROY:
    case DRM_IOCTL_I915_GEM_SET_DOMAIN:
      return 0;
    case DRM_IOCTL_I915_GEM_CONTEXT_CREATE_EXT:
      ((struct drm_i915_gem_context_create_ext*)asked)->ctx_id = ++last_id;
      return 0;
    case DRM_IOCTL_I915_GEM_VM_CREATE:
      ((struct drm_i915_gem_vm_control*)asked)->vm_id = ++last_id;
      return 0;
    case DRM_IOCTL_I915_GET_RESET_STATS:
      return get_reset_stats(asked);
    case DRM_IOCTL_I915_REG_READ:
      ((struct drm_i915_reg_read*)asked)->val = now() & ((1ull << 36) - 1);
      return 0;
    case DRM_IOCTL_I915_GEM_CREATE: {
      struct drm_i915_gem_create* const create = asked;
      create->handle = create_buffer(&create->size);
      return 0;
    }
    case DRM_IOCTL_I915_GEM_CREATE_EXT:
      return create_in_region(asked);
    case DRM_IOCTL_I915_GEM_USERPTR:
      return wrap_user_memory(asked);
    case DRM_IOCTL_I915_GEM_MMAP_OFFSET:
      return get_offset(asked);
    case DRM_IOCTL_GEM_CLOSE:
      return close_buffer(((const struct drm_gem_close*)asked)->handle);
    case DRM_IOCTL_I915_GEM_WAIT: {
      const uint32_t handle = ((const struct drm_i915_gem_wait*)asked)->bo_handle;
      return buffer_of(handle) == NULL ? ENOENT : 0;
    }
    case DRM_IOCTL_I915_GEM_EXECBUFFER2:
      return execute(asked);
    default:
      LOG("ioctl 0x%lx is not answered\n", request);
      return ENOTTY;
  }
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const asked = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) != DRM_IOCTL_BASE || !is_device(fd))
    return NEXT(ioctl)(fd, request, asked);
  pthread_mutex_lock(&mutex);
  const int error = answer(request & UINT32_MAX, asked);
  pthread_mutex_unlock(&mutex);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
