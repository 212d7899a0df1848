// An OpenCL layer that writes what programs are built and what kernels are launched
// into folders, so that other compilers and simulators can be given the same.
//
// RECORDED_PROGRAMS is a folder for sources: one file per source and options of a build
// for a GPU. RECORDED_LAUNCHES is a folder for launches. A launch then waits for all
// that comes before it, and the host for its end.
//
// Note [A recorded launch]
// A file has lines of text up to "end", and then bytes:
//
//   program HASH                    the name of a file in the same folder
//   kernel NAME
//   sizes D O O O G G G L L L       dimensions; offsets, global and local sizes (0: the
//                                   driver's choice)
//   value SIZE | local SIZE | null | memory I OFFSET | outside     one per argument
//   allocation SIZE WRITTEN         one per allocation; 0 if nothing wrote to it before
//   end
//
// The bytes are those of the values, in order; of each allocation before the launch;
// and of each after it. "outside" is an address in no allocation that the layer has
// seen.

#ifndef XPURT_LAUNCH_RECORDER_LAYER_LAYER_H_
#define XPURT_LAUNCH_RECORDER_LAYER_LAYER_H_

#include "address_ranges.h"
#include "opencl_layer.h"

enum { MAX_ARGUMENTS = 128 };

typedef enum { UNSET, VALUE, LOCAL, POINTER } ArgumentKind;

typedef struct {
  ArgumentKind kind;
  size_t size;
  void* value;  // its bytes, or the pointer
} Argument;

typedef struct {
  AddressRange range;
  bool is_written;
} Allocation;

// The lock of kernels, allocations and launches.
void lock_records(void);
void unlock_records(void);

typedef struct {
  char program[17];  // the name of its file; empty if it has no source
  Argument arguments[MAX_ARGUMENTS];
} KernelFacts;

// Null for a kernel that was made past this layer. Called with the lock.
const KernelFacts* facts_of(cl_kernel kernel);

// Null if the layer has not seen it. Called with the lock.
Allocation* allocation_around(const void* address);

// The address of an extension's function below this layer, for a context or a queue.
void* below(cl_context context, const char* name);

// Writes the source into `folder`, unless it is there; `hash` gets its name.
void write_program(const char* folder, const char* source, const char* options,
                   char hash[17]);

// The source of a program and the options of its build, in new memory; null for a
// program that was made from a binary.
char* source_of(cl_program program);
char* options_of(cl_program program);

void hook_programs(cl_icd_dispatch* table);
void hook_kernels(cl_icd_dispatch* table);
void hook_launches(cl_icd_dispatch* table);

// The layer's own function for one of an extension; null if it has none.
void* kernel_entry_point(const char* name);
void* memory_entry_point(const char* name);

#endif  // XPURT_LAUNCH_RECORDER_LAYER_LAYER_H_
