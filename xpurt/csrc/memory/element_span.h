// The bytes of a storage that a tensor's elements lie in.
#pragma once

#include <c10/core/TensorImpl.h>

#include "host/api.h"
#include "host/intervals.h"

namespace xpurt {

// From the first element to the last, in bytes of the storage; empty if the tensor has
// no elements. Between them may be bytes of other tensors.
XPURT_API Interval element_span(const c10::TensorImpl& tensor);

}  // namespace xpurt
