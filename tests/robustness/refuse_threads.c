/* Preloaded: std::thread gets no thread while `xpurt_test_refuse_threads` says so.
   Others do: a driver without its own ends the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

int xpurt_test_refuse_threads = 0;
int xpurt_test_refused = 0;

typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*body)(void*), void* argument) {
  Dl_info caller;
  const int ours = dladdr(__builtin_return_address(0), &caller) != 0 &&
                   strstr(caller.dli_fname, "libstdc++") != NULL;
  if (ours && __atomic_load_n(&xpurt_test_refuse_threads, __ATOMIC_SEQ_CST)) {
    __atomic_add_fetch(&xpurt_test_refused, 1, __ATOMIC_SEQ_CST);
    return EAGAIN;
  }
  return ((Create*)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, body,
                                                       argument);
}
