// The check of the order of locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <deque>
#include <string>
#include <vector>

#include "host/gil.h"
#include "host/mutex.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Takes locks of these ranks one after the other, and gives them up.
void take_locks(const std::vector<std::string>& ranks, bool without_gil) {
  std::optional<WithoutGil> released;
  if (without_gil) released.emplace();
  std::deque<Mutex> mutexes;
  std::vector<std::unique_lock<Mutex>> locks;
  for (const std::string& name : ranks) {
    if (name == name_of(Rank::gil)) {
      const WithGil gil;
      continue;
    }
    locks.emplace_back(mutexes.emplace_back(rank_named(name)));
  }
}

}  // namespace

void bind_locks(py::module_& m) {
  m.def("check_locks", &check_locks, py::arg("on"));
  m.def("locks_out_of_order", &locks_out_of_order);
  py::module_ testing = m.def_submodule("testing");
  testing.def("take_locks", &take_locks, py::arg("ranks"),
              py::arg("without_gil") = false);
}

}  // namespace xpurt
