// The Python interface of lazy tensors: see Note [Rooms of their own].
#include <pybind11/pybind11.h>

#include "python/bind.h"
#include "python/index_errors.h"

PYBIND11_MODULE(_lazy, m) {
  xpurt::translate_index_errors();
  xpurt::bind_lazy_backend(m);
}
