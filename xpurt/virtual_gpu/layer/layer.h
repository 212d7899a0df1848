// The virtual GPU: an OpenCL layer that adds a second platform. Its one device is the
// CPU, reported as a GPU. The layer is a plain C library without Python. The OpenCL
// loader loads it through OPENCL_LAYERS, so that every user of OpenCL in the process
// (and in its children) has the same devices.
//
// Note [Lenient and strict]
// The device is a sub-device of the real CPU device, so kernels run on CPU threads of
// this process. Without checks (lenient) it allows accesses that fail on a discrete
// GPU: kernels read malloc memory and the memory of other contexts, and the host reads
// device memory. Strict refuses all of them, as described in memory.h. Coherent is
// lenient, and reports it: an integrated GPU, whose kernels may use any memory of the
// host. Svm is strict about another interface, as described in coarse.h: a GPU without
// unified shared memory.
//
// Each file hooks the entry points of one concern into the layer's table, with a
// function hook_...(), and calls the table below through `next`.

#ifndef XPURT_VIRTUAL_GPU_LAYER_H_
#define XPURT_VIRTUAL_GPU_LAYER_H_

#include "opencl_layer.h"

// What the device has less of than the CPU; see limits.c.
typedef struct {
  bool any;
  bool no_usm;
  bool no_compiler;
  bool narrow;            // addresses of 32 bits
  cl_uint vendor_id;      // 0: no PCI vendor's
  int opencl;             // version in tenths; 0: the CPU's
  uint64_t sub_groups;    // a bit per size in lanes; 0: the CPU's
  uint64_t work_group;    // work-items; 0: the CPU's
  uint64_t local_memory;  // bytes; 0: the CPU's
  uint64_t vector_width;  // floats of a work-item's instruction; 0: the CPU's
} Limits;

enum { NO_SUB_GROUPS = 1 };  // of Limits.sub_groups: the bit for 0 lanes

// The settings of the environment, read once when the loader loads the layer.
typedef struct {
  bool on;
  bool strict;  // it refuses what a discrete GPU refuses; also in the mode svm
  bool svm;
  bool coherent;
  bool fp64;
  bool fp16;
  uint64_t delay_ns;      // per kernel; 0: none
  double link_gb_per_s;   // between the memory of host and device; 0: as fast as it is
  uint64_t memory_bytes;  // 0: what the CPU device reports
  uint64_t fail_after;    // kernels; 0: never
  Limits limits;
} Settings;

extern Settings settings;
void read_settings(void);

typedef struct {
  cl_platform_id platform;      // ours; never passed down
  cl_platform_id cpu_platform;  // the platform of `cpu`
  cl_device_id cpu;
  cl_device_id device;  // a sub-device of `cpu`; null if no CPU device was found
} VirtualGpu;

// Created at the first call.
const VirtualGpu* virtual_gpu(void);

// clGetDeviceInfo of the virtual GPU.
cl_int virtual_gpu_device_info(cl_device_info param, size_t room, void* out,
                               size_t* size_ret);

// Whether the limits hide the extension or feature of this name.
bool limits_hide(const char* word, size_t length);

// Answers clGetDeviceInfo, and returns true, if a limit changes the answer.
bool limits_answer(cl_device_info param, size_t room, void* out, size_t* size_ret,
                   cl_int* error);
cl_int limits_platform_version(size_t room, void* out, size_t* size_ret);

// The head of a source that makes it use no more than the limits allow.
const char* limits_preamble(void);

bool is_gpu_device(cl_device_id device);
bool is_gpu_context(cl_context context);

// Whether the queue belongs to the virtual GPU and the virtual GPU has failed.
bool takes_no_work(cl_command_queue queue);

// The event for which a copy behind `waits` has to wait, and which stands for them, if
// the copy takes the link; else null. The caller releases it.
cl_int take_link(cl_command_queue queue, const void* to, const void* from, size_t size,
                 cl_uint wait_count, const cl_event* waits, cl_event* event);

void hook_platforms(cl_icd_dispatch* table);
void hook_devices(cl_icd_dispatch* table);
void hook_contexts(cl_icd_dispatch* table);
void hook_programs(cl_icd_dispatch* table);
void hook_buffers(cl_icd_dispatch* table);
void hook_svm(cl_icd_dispatch* table);
void hook_delay(cl_icd_dispatch* table);
void hook_failure(cl_icd_dispatch* table);         // after hook_delay()
void hook_limits(cl_icd_dispatch* table);          // after hook_failure()
void hook_coarse_kernels(cl_icd_dispatch* table);  // after hook_limits()
void hook_exit(cl_icd_dispatch* table);

// The layer's version of an extension function of the CPU platform; null if the layer
// does not replace it.
void* usm_entry_point(const char* name);

#endif  // XPURT_VIRTUAL_GPU_LAYER_H_
