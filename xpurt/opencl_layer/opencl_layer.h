// What every OpenCL layer of xpurt has: the functions that the OpenCL loader requires,
// and the table of the functions below. A layer is a plain C library without Python. It
// defines `layer_name` and `hook_all`, and each of its files hooks the entry points of
// one concern into the table.

#ifndef XPURT_OPENCL_LAYER_OPENCL_LAYER_H_
#define XPURT_OPENCL_LAYER_OPENCL_LAYER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <CL/cl_layer.h>

#include <CL/cl_ext.h>

// The table below this layer: the functions of the loader, or of the next layer.
extern cl_icd_dispatch next;

// Defined by the layer: its name, and a function that replaces entries of `table`. It
// is called once, when the loader loads the layer.
extern const char layer_name[];
void hook_all(cl_icd_dispatch* table);

// Writes the reason for a refused call to stderr, as OpenCL and SYCL report the error
// code only. Returns `code`, so that it can be a function's return value.
cl_int refuse(cl_int code, const char* call, const char* why);

// Answers a clGet...Info query with `size` bytes at `value`.
cl_int answer(const void* value, size_t size, size_t room, void* out, size_t* size_ret);

// The answer below to clGetDeviceInfo or clGetPlatformInfo, in new memory that the
// caller frees and that ends with a zero byte; null on failure.
void* device_answer(cl_device_id device, cl_device_info param, size_t* size);
void* platform_answer(cl_platform_id platform, cl_platform_info param, size_t* size);

cl_context context_of_queue(cl_command_queue queue);
cl_context context_of_kernel(cl_kernel kernel);

// Whether `words`, separated by spaces, contain `word`.
bool has_word(const char* words, const char* word);

#endif  // XPURT_OPENCL_LAYER_OPENCL_LAYER_H_
