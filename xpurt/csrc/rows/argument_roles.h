// Where an overload has the arguments that a kind of row reads.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "op/row_spec.h"

namespace xpurt {

struct ArgumentRoles {
  int count = 0;
  int out = -1;  // like the others: -1 for one that the overload does not have
};

struct NamedRole {
  const char* name;
  int* position;
};

// Sets the positions of the arguments. False if the overload has one of another name.
inline bool find_roles(const Overload& overload, ArgumentRoles* roles,
                       std::initializer_list<NamedRole> named) {
  for (const c10::Argument& argument : overload.schema().arguments()) {
    const int at = roles->count++;
    if (argument.is_out()) {
      roles->out = at;
      continue;
    }
    const auto role = std::ranges::find(named, argument.name(), &NamedRole::name);
    if (role == named.end()) return false;
    *role->position = at;
  }
  return true;
}

}  // namespace xpurt
