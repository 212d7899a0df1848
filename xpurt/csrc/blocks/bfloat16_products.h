// Products of few rows with a weight in bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// Note [Few rows in bfloat16]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A product of a row takes the time of reading the weight, if the loop does nothing but
// that and a multiplication of what it read. PyTorch's product reads bfloat16 at a
// third of the memory's rate.

// Whether the processor and ATEN_CPU_CAPABILITY have the instructions.
bool multiplies_rows_of_bfloat16();

// x: (..., columns), weight: (results, columns), bias: (results), or none, all in
// bfloat16. Returns (..., results) in bfloat16, rounded once. Runs on PyTorch's
// threads.
at::Tensor bfloat16_product(const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias);

}  // namespace xpurt
