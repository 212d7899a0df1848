// An OpenCL layer that writes the source of each program that is built, with its
// options, into the folder RECORDED_PROGRAMS: one file per source and options.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl_layer.h"

const char layer_name[] = "xpurt record programs";

typedef struct Source {
  cl_program program;
  char* text;
  struct Source* next;
} Source;

static Source* sources;
static pthread_mutex_t one_thread = PTHREAD_MUTEX_INITIALIZER;

static Source* source_of(cl_program program) {
  for (Source* each = sources; each != NULL; each = each->next)
    if (each->program == program) return each;
  return NULL;
}

static char* joined(cl_uint count, const char** strings, const size_t* lengths) {
  char* text = NULL;
  size_t size = 0;
  FILE* const out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  for (cl_uint i = 0; i < count; i++) {
    const bool has_length = lengths != NULL && lengths[i] != 0;
    fwrite(strings[i], 1, has_length ? lengths[i] : strlen(strings[i]), out);
  }
  fclose(out);
  return text;
}

static cl_program create_program(cl_context context, cl_uint count,
                                 const char** strings, const size_t* lengths,
                                 cl_int* error) {
  const cl_program program =
      next.clCreateProgramWithSource(context, count, strings, lengths, error);
  if (program == NULL) return NULL;
  pthread_mutex_lock(&one_thread);
  Source* of = source_of(program);  // of a program that was released
  if (of == NULL && (of = calloc(1, sizeof *of)) != NULL) {
    *of = (Source){program, NULL, sources};
    sources = of;
  }
  if (of != NULL) {
    free(of->text);
    of->text = joined(count, strings, lengths);
  }
  pthread_mutex_unlock(&one_thread);
  return program;
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
  snprintf(made, sizeof made, "%s.%d", path, (int)getpid());
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
  pthread_mutex_lock(&one_thread);
  const Source* const of = source_of(program);
  if (of != NULL && of->text != NULL && is_for_gpu(program))
    record(of->text, options ? options : "");
  pthread_mutex_unlock(&one_thread);
  return next.clBuildProgram(program, count, devices, options, notify, data);
}

void hook_all(cl_icd_dispatch* table) {
  table->clCreateProgramWithSource = create_program;
  table->clBuildProgram = build_program;
}
