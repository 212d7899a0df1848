// The Python interface of prototypes of devices: see Note [Rooms of their own].
#include <pybind11/pybind11.h>

#include "python/bind.h"
#include "python/index_errors.h"

PYBIND11_MODULE(_prototype, m) {
  xpurt::translate_index_errors();
  xpurt::bind_prototype(m);
  xpurt::bind_prototype_backend(m);
  xpurt::bind_renamed_code(m);
}
