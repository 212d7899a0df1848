// The sources of programs.

#define _GNU_SOURCE  // gettid
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layer.h"

char* source_of(cl_program program) {
  size_t size = 0;
  next.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &size);
  char* const text = size > 1 ? malloc(size) : NULL;
  if (text != NULL) next.clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, text, NULL);
  return text;
}

static cl_device_id device_of(cl_program program) {
  cl_device_id device = NULL;  // of a context with one device
  next.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, NULL);
  return device;
}

char* options_of(cl_program program) {
  const cl_device_id device = device_of(program);
  size_t size = 0;
  next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, 0, NULL, &size);
  char* const text = calloc(size + 1, 1);
  if (text != NULL)
    next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size, text,
                               NULL);
  return text;
}

// FNV-1a (Fowler, Noll and Vo, 1991).
static uint64_t hash_of(const char* text, uint64_t hash) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
  return hash;
}

void write_program(const char* folder, const char* source, const char* options,
                   char hash[17]) {
  const uint64_t number = hash_of(source, hash_of(options, 0xcbf29ce484222325));
  snprintf(hash, 17, "%016llx", (unsigned long long)number);
  char path[4096], made[4112];
  snprintf(path, sizeof path, "%s/%s.cl", folder, hash);
  if (access(path, F_OK) == 0) return;
  snprintf(made, sizeof made, "%s.%d", path, (int)gettid());
  FILE* const out = fopen(made, "w");
  if (out == NULL) {
    perror(made);
    return;
  }
  fprintf(out, "// %s\n%s", options, source);
  if (fclose(out) != 0 || rename(made, path) != 0) perror(path);
}

static bool is_for_gpu(cl_program program) {
  cl_device_type type = 0;
  next.clGetDeviceInfo(device_of(program), CL_DEVICE_TYPE, sizeof type, &type, NULL);
  return (type & CL_DEVICE_TYPE_GPU) != 0;
}

static cl_int build_program(cl_program program, cl_uint count,
                            const cl_device_id* devices, const char* options,
                            void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  char* const source = is_for_gpu(program) ? source_of(program) : NULL;
  char hash[17];
  if (source != NULL)
    write_program(getenv("RECORDED_PROGRAMS"), source, options != NULL ? options : "",
                  hash);
  free(source);
  return next.clBuildProgram(program, count, devices, options, notify, data);
}

// A program from a binary has no source. Who asks for one makes it from its source.
static cl_program refuse_binary(cl_context context, cl_uint count,
                                const cl_device_id* devices, const size_t* lengths,
                                const unsigned char** binaries, cl_int* status,
                                cl_int* error) {
  (void)context, (void)devices, (void)lengths, (void)binaries;
  for (cl_uint i = 0; status != NULL && i < count; i++) status[i] = CL_INVALID_BINARY;
  if (error != NULL) *error = CL_INVALID_BINARY;
  return NULL;
}

void hook_programs(cl_icd_dispatch* table) {
  if (getenv("RECORDED_LAUNCHES") != NULL)
    table->clCreateProgramWithBinary = refuse_binary;
  if (getenv("RECORDED_PROGRAMS") != NULL) table->clBuildProgram = build_program;
}
