// PyTorch's vector functions on the host (exp, tanh, log, ...).
#pragma once

namespace xpurt {

// Has them prepare themselves: see Note [The first vector function].
void prepare_vector_math();

}  // namespace xpurt
