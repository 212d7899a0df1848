// What a primitive does to its result before it writes it. Only for the .cpp files of
// onednn/.
#pragma once

#include <dnnl.hpp>

#include "onednn/activation.h"
#include "onednn/plan.h"

namespace xpurt {

// Adds a tensor of the layout `other` to the result, unless it is empty; then applies
// the function. Throws ValueError for a function that does not exist.
dnnl::post_ops post_ops_of(const Layout& other, const Activation& activation);

}  // namespace xpurt
