// PyTorch's vector functions on the host (exp, tanh, log, ...).
#pragma once

namespace xpurt {

// Initializes them: see Note [The first vector function].
void prepare_vector_math();

}  // namespace xpurt
