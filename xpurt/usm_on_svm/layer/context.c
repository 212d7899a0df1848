// Contexts, and which of them are served.

#include <pthread.h>
#include <stdlib.h>

#include "layer.h"

enum { MAX_DEVICES = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ContextFacts* known;
static size_t known_count;

static ContextFacts look_at(cl_context context) {
  ContextFacts facts = {context, true, true, true, true};
  cl_device_id devices[MAX_DEVICES];
  size_t size = 0;
  if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices,
                            &size))
    return (ContextFacts){.context = context};
  for (size_t i = 0; i < size / sizeof *devices; i++) {
    const cl_device_svm_capabilities svm = served_svm(devices[i]);
    cl_device_type type = 0;
    next.clGetDeviceInfo(devices[i], CL_DEVICE_TYPE, sizeof type, &type, NULL);
    facts.served &= svm != 0;
    facts.has_fine_grain &= (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
    facts.has_atomics &= (svm & CL_DEVICE_SVM_ATOMICS) != 0;
    facts.is_cpu &= (type & CL_DEVICE_TYPE_CPU) != 0;
  }
  return facts;
}

static size_t place_of(cl_context context) {
  size_t i = 0;
  while (i < known_count && known[i].context != context) i++;
  return i;
}

ContextFacts facts_of(cl_context context) {
  pthread_mutex_lock(&lock);
  const size_t place = place_of(context);
  const ContextFacts facts =
      place < known_count ? known[place] : (ContextFacts){.context = context};
  pthread_mutex_unlock(&lock);
  return facts;
}

static void CL_CALLBACK context_destroyed(cl_context context, void* unused) {
  (void)unused;
  forget_memory_of(context);
  pthread_mutex_lock(&lock);
  const size_t place = place_of(context);
  if (place < known_count) known[place] = known[--known_count];
  pthread_mutex_unlock(&lock);
}

static void made_context(cl_context context) {
  const ContextFacts facts = look_at(context);
  if (!facts.served) return;
  pthread_mutex_lock(&lock);
  const size_t place = place_of(context);
  ContextFacts* const grown =
      place < known_count ? known : realloc(known, (place + 1) * sizeof *known);
  if (grown != NULL) {
    known = grown;
    known[place] = facts;
    if (place == known_count) known_count++;
  }
  pthread_mutex_unlock(&lock);
  if (next.clSetContextDestructorCallback != NULL)
    next.clSetContextDestructorCallback(context, context_destroyed, NULL);
}

static cl_context create_context(const cl_context_properties* properties, cl_uint count,
                                 const cl_device_id* devices,
                                 void (*notify)(const char*, const void*, size_t,
                                                void*),
                                 void* user_data, cl_int* error) {
  const cl_context made =
      next.clCreateContext(properties, count, devices, notify, user_data, error);
  if (made != NULL) made_context(made);
  return made;
}

static cl_context create_context_from_type(const cl_context_properties* properties,
                                           cl_device_type type,
                                           void (*notify)(const char*, const void*,
                                                          size_t, void*),
                                           void* user_data, cl_int* error) {
  const cl_context made =
      next.clCreateContextFromType(properties, type, notify, user_data, error);
  if (made != NULL) made_context(made);
  return made;
}

void hook_contexts(cl_icd_dispatch* table) {
  table->clCreateContext = create_context;
  table->clCreateContextFromType = create_context_from_type;
}
