// XPURT_VIRTUAL_GPU_FP64=0 and XPURT_VIRTUAL_GPU_FP16=0: kernels are compiled as for a
// device without doubles, or without arithmetic in half. The CPU's compiler has no
// option for that. So the source gets a preamble that removes the type. Without
// doubles, constants become float, as OpenCL C prescribes. Programs from SPIR-V or
// binaries are not checked.

#include <stdlib.h>
#include <string.h>

#include "layer.h"

static const char WITHOUT_FP64[] =
    "#undef cl_khr_fp64\n"
    "#undef __opencl_c_fp64\n"
    "#define double this_device_has_no_fp64\n"
    "#define double2 this_device_has_no_fp64\n"
    "#define double3 this_device_has_no_fp64\n"
    "#define double4 this_device_has_no_fp64\n"
    "#define double8 this_device_has_no_fp64\n"
    "#define double16 this_device_has_no_fp64\n";
// Pointers to half, vload_half() and vstore_half() stay, as OpenCL C prescribes.
static const char WITHOUT_FP16[] =
    "#undef cl_khr_fp16\n"
    "#undef __opencl_c_fp16\n"
    "#pragma OPENCL EXTENSION cl_khr_fp16 : disable\n";
static const char FIRST_LINE[] = "#line 1\n";
static const char FLOAT_CONSTANTS[] = "-cl-single-precision-constant";

static bool without_fp64(cl_context context) {
  return !settings.fp64 && is_gpu_context(context);
}

static bool has_preamble(cl_context context) {
  return (!settings.fp64 || !settings.fp16 || *limits_preamble() != '\0') &&
         is_gpu_context(context);
}

static cl_program create_program(cl_context context, cl_uint count,
                                 const char** sources, const size_t* lengths,
                                 cl_int* error) {
  if (!has_preamble(context) || count == 0 || sources == NULL)
    return next.clCreateProgramWithSource(context, count, sources, lengths, error);
  const char* const preamble[] = {settings.fp64 ? "" : WITHOUT_FP64,
                                  settings.fp16 ? "" : WITHOUT_FP16, limits_preamble(),
                                  FIRST_LINE};
  const cl_uint before = sizeof preamble / sizeof *preamble;
  const char** const with = malloc((count + before) * sizeof *with);
  size_t* const with_lengths = calloc(count + before, sizeof *with_lengths);
  cl_program program = NULL;
  if (with != NULL && with_lengths != NULL) {
    memcpy(with, preamble, sizeof preamble);
    memcpy(with + before, sources, count * sizeof *with);
    // A length of 0 means that the string ends with a null.
    if (lengths != NULL)
      memcpy(with_lengths + before, lengths, count * sizeof *lengths);
    program = next.clCreateProgramWithSource(context, count + before, with,
                                             with_lengths, error);
  } else if (error != NULL) {
    *error = CL_OUT_OF_HOST_MEMORY;
  }
  free(with);
  free(with_lengths);
  return program;
}

// The options for `program`, with FLOAT_CONSTANTS if it needs them. The caller frees
// *added.
static const char* options_for(cl_program program, const char* options, char** added) {
  *added = NULL;
  cl_context context = NULL;
  next.clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL);
  if (!without_fp64(context)) return options;
  const size_t length = options == NULL ? 0 : strlen(options);
  char* const both = malloc(length + 1 + sizeof FLOAT_CONSTANTS);
  if (both == NULL) return options;
  if (length > 0) memcpy(both, options, length);
  both[length] = ' ';
  memcpy(both + length + 1, FLOAT_CONSTANTS, sizeof FLOAT_CONSTANTS);
  *added = both;
  return both;
}

static cl_int build_program(cl_program program, cl_uint count,
                            const cl_device_id* devices, const char* options,
                            void (*notify)(cl_program, void*), void* user_data) {
  char* added = NULL;
  const cl_int error =
      next.clBuildProgram(program, count, devices,
                          options_for(program, options, &added), notify, user_data);
  free(added);
  return error;
}

static cl_int compile_program(cl_program program, cl_uint count,
                              const cl_device_id* devices, const char* options,
                              cl_uint header_count, const cl_program* headers,
                              const char** header_names,
                              void (*notify)(cl_program, void*), void* user_data) {
  char* added = NULL;
  const cl_int error = next.clCompileProgram(
      program, count, devices, options_for(program, options, &added), header_count,
      headers, header_names, notify, user_data);
  free(added);
  return error;
}

void hook_programs(cl_icd_dispatch* table) {
  table->clCreateProgramWithSource = create_program;
  table->clBuildProgram = build_program;
  table->clCompileProgram = compile_program;
}
