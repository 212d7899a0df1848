/* Preloaded: no thread can be started while `xpurt_test_refuse_threads` says so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

int xpurt_test_refuse_threads = 0;
int xpurt_test_refused = 0;

typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*body)(void*), void* argument) {
  if (__atomic_load_n(&xpurt_test_refuse_threads, __ATOMIC_SEQ_CST)) {
    __atomic_add_fetch(&xpurt_test_refused, 1, __ATOMIC_SEQ_CST);
    return EAGAIN;
  }
  return ((Create*)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, body,
                                                       argument);
}
