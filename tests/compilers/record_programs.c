// An OpenCL layer that writes the source of each program that is built, with its
// options, into the folder RECORDED_PROGRAMS: one file per source and options.
#define _GNU_SOURCE  // gettid
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl_layer.h"

const char layer_name[] = "xpurt record programs";

// In new memory; null for a program that was made from a binary.
static char* source_of(cl_program program) {
  size_t size = 0;
  next.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &size);
  char* const text = size > 1 ? malloc(size) : NULL;
  if (text != NULL) next.clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, text, NULL);
  return text;
}

// FNV-1a (Fowler, Noll and Vo, 1991).
static uint64_t hash_of(const char* text, uint64_t hash) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
  return hash;
}

static void record(const char* text, const char* options) {
  const char* const folder = getenv("RECORDED_PROGRAMS");
  if (folder == NULL) return;
  const uint64_t hash = hash_of(text, hash_of(options, 0xcbf29ce484222325));
  char path[4096], made[4112];
  snprintf(path, sizeof path, "%s/%016llx.cl", folder, (unsigned long long)hash);
  if (access(path, F_OK) == 0) return;
  snprintf(made, sizeof made, "%s.%d", path, (int)gettid());
  FILE* const out = fopen(made, "w");
  if (out == NULL) {
    perror(made);
    return;
  }
  fprintf(out, "// %s\n%s", options, text);
  if (fclose(out) != 0 || rename(made, path) != 0) perror(path);
}

// Of a context with one device.
static bool is_for_gpu(cl_program program) {
  cl_device_id device = NULL;
  cl_device_type type = 0;
  next.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, NULL);
  next.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  return (type & CL_DEVICE_TYPE_GPU) != 0;
}

static cl_int build_program(cl_program program, cl_uint count,
                            const cl_device_id* devices, const char* options,
                            void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  char* const source = is_for_gpu(program) ? source_of(program) : NULL;
  if (source != NULL) record(source, options != NULL ? options : "");
  free(source);
  return next.clBuildProgram(program, count, devices, options, notify, data);
}

void hook_all(cl_icd_dispatch* table) {
  table->clBuildProgram = build_program;
}
