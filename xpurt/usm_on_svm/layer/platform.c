// Which platforms are served, and what they and their devices report.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

static const char USM[] = "cl_intel_unified_shared_memory";

enum { MAX_PLATFORMS = 64, MAX_DEVICES = 256 };

static cl_platform_id served[MAX_PLATFORMS];
static size_t served_count;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

static cl_device_svm_capabilities svm_below(cl_device_id device) {
  cl_device_svm_capabilities svm = 0;
  next.clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
  return svm;
}

static bool has_usm_below(cl_device_id device) {
  size_t size = 0;
  char* const extensions = device_answer(device, CL_DEVICE_EXTENSIONS, &size);
  const bool found = extensions != NULL && has_word(extensions, USM);
  free(extensions);
  return found;
}

static bool needs_service(cl_platform_id platform) {
  cl_device_id devices[MAX_DEVICES];
  cl_uint count = 0;
  if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count))
    return false;
  bool any = false;
  for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
    if (has_usm_below(devices[i])) return false;
    any |= (svm_below(devices[i]) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  }
  return any;
}

static void look(void) {
  cl_platform_id platforms[MAX_PLATFORMS];
  cl_uint count = 0;
  if (next.clGetPlatformIDs(MAX_PLATFORMS, platforms, &count)) return;
  for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++)
    if (needs_service(platforms[i])) served[served_count++] = platforms[i];
}

bool is_served_platform(cl_platform_id platform) {
  pthread_once(&looked, look);
  for (size_t i = 0; i < served_count; i++)
    if (served[i] == platform) return true;
  return false;
}

cl_device_svm_capabilities served_svm(cl_device_id device) {
  cl_platform_id platform = NULL;
  next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
  if (!is_served_platform(platform)) return 0;
  const cl_device_svm_capabilities svm = svm_below(device);
  return (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0 ? svm : 0;
}

// Commands recorded into a command buffer would run without the list of their memory.
static bool is_hidden(const char* name, size_t length) {
  static const char command_buffer[] = "cl_khr_command_buffer";
  return length >= strlen(command_buffer) &&
         memcmp(name, command_buffer, strlen(command_buffer)) == 0;
}

// `words` without those that are hidden, and with USM; frees `words`.
static cl_int answer_words(char* words, size_t room, void* out, size_t* size_ret) {
  char* const changed =
      words == NULL ? NULL : calloc(strlen(words) + 2 + sizeof USM, 1);
  char* end = changed;
  for (const char* word = words; changed != NULL && *word != '\0';) {
    const size_t length = strcspn(word, " ");
    if (length > 0 && !is_hidden(word, length)) {
      memcpy(end, word, length);
      end += length;
      *end++ = ' ';
    }
    word += length;
    word += strspn(word, " ");
  }
  free(words);
  if (changed == NULL) return CL_OUT_OF_HOST_MEMORY;
  memcpy(end, USM, sizeof USM);
  const cl_int error = answer(changed, strlen(changed) + 1, room, out, size_ret);
  free(changed);
  return error;
}

// The same for a list of `size` bytes.
static cl_int answer_versions(cl_name_version* names, size_t size, size_t room,
                              void* out, size_t* size_ret) {
  if (names == NULL) return CL_INVALID_VALUE;  // a driver older than OpenCL 3.0
  size_t kept = 0;
  for (size_t i = 0; i < size / sizeof *names; i++)
    if (!is_hidden(names[i].name, strlen(names[i].name))) names[kept++] = names[i];
  cl_name_version* const grown = realloc(names, (kept + 1) * sizeof *names);
  if (grown == NULL) free(names);
  if (grown == NULL) return CL_OUT_OF_HOST_MEMORY;
  grown[kept] =
      (cl_name_version){.version = CL_INTEL_UNIFIED_SHARED_MEMORY_EXTENSION_VERSION};
  memcpy(grown[kept].name, USM, sizeof USM);
  const cl_int error = answer(grown, (kept + 1) * sizeof *grown, room, out, size_ret);
  free(grown);
  return error;
}

static cl_device_unified_shared_memory_capabilities_intel capabilities(
    cl_device_info param, cl_device_svm_capabilities svm) {
  const cl_bitfield access =
      CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL |
      ((svm & CL_DEVICE_SVM_ATOMICS) != 0 ? CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL
                                          : 0);
  const bool fine = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  switch (param) {
    case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
      return CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL |
             CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL;
    case CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL:
      return fine ? access : CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL;
    case CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
      return fine ? access : 0;
    case CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL:
      return (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0 ? access : 0;
    default:  // memory that devices share with each other
      return 0;
  }
}

static cl_int get_device_info(cl_device_id device, cl_device_info param, size_t room,
                              void* out, size_t* size_ret) {
  const bool names =
      param == CL_DEVICE_EXTENSIONS || param == CL_DEVICE_EXTENSIONS_WITH_VERSION;
  const bool of_usm = param >= CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL &&
                      param <= CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL;
  const cl_device_svm_capabilities svm = names || of_usm ? served_svm(device) : 0;
  if (svm == 0) return next.clGetDeviceInfo(device, param, room, out, size_ret);
  size_t size = 0;
  if (param == CL_DEVICE_EXTENSIONS)
    return answer_words(device_answer(device, param, &size), room, out, size_ret);
  if (param == CL_DEVICE_EXTENSIONS_WITH_VERSION) {
    cl_name_version* const below = device_answer(device, param, &size);
    return answer_versions(below, size, room, out, size_ret);
  }
  const cl_device_unified_shared_memory_capabilities_intel able =
      capabilities(param, svm);
  return answer(&able, sizeof able, room, out, size_ret);
}

// SYCL ignores platforms whose name contains one of these: it has other ways to those
// vendors' devices, which need libraries that its wheels do not have.
static bool is_ignored_by_sycl(const char* name) {
  return strstr(name, "NVIDIA CUDA") != NULL ||
         strstr(name, "AMD Accelerated Parallel Processing") != NULL;
}

// The platform's name, or the vendor's in its place, with a suffix.
static cl_int answer_name(cl_platform_id platform, size_t room, void* out,
                          size_t* size_ret) {
  static const char suffix[] = " with USM by xpurt";
  size_t size = 0;
  char* name = platform_answer(platform, CL_PLATFORM_NAME, &size);
  if (name != NULL && is_ignored_by_sycl(name)) {
    free(name);
    name = platform_answer(platform, CL_PLATFORM_VENDOR, &size);
  }
  char* const longer = name == NULL ? NULL : realloc(name, size + sizeof suffix);
  if (longer == NULL) free(name);
  if (longer == NULL) return CL_OUT_OF_HOST_MEMORY;
  memcpy(longer + strlen(longer), suffix, sizeof suffix);
  const cl_int error = answer(longer, strlen(longer) + 1, room, out, size_ret);
  free(longer);
  return error;
}

static cl_int get_platform_info(cl_platform_id platform, cl_platform_info param,
                                size_t room, void* out, size_t* size_ret) {
  if (!is_served_platform(platform))
    return next.clGetPlatformInfo(platform, param, room, out, size_ret);
  size_t size = 0;
  switch (param) {
    case CL_PLATFORM_NAME:
      return answer_name(platform, room, out, size_ret);
    case CL_PLATFORM_EXTENSIONS:
      return answer_words(platform_answer(platform, param, &size), room, out, size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION: {
      cl_name_version* const below = platform_answer(platform, param, &size);
      return answer_versions(below, size, room, out, size_ret);
    }
    default:
      return next.clGetPlatformInfo(platform, param, room, out, size_ret);
  }
}

static void* get_extension_function(cl_platform_id platform, const char* name) {
  void* const ours =
      name != NULL && is_served_platform(platform) ? usm_entry_point(name) : NULL;
  return ours != NULL ? ours
                      : next.clGetExtensionFunctionAddressForPlatform(platform, name);
}

void hook_platforms(cl_icd_dispatch* table) {
  table->clGetDeviceInfo = get_device_info;
  table->clGetPlatformInfo = get_platform_info;
  table->clGetExtensionFunctionAddressForPlatform = get_extension_function;
}
