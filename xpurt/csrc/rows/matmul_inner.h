// Products that several devices compute along their inner dimension.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "schedule/split.h"

namespace xpurt {

// Note [Division of the inner dimension]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The gradient of a linear layer's weight is grad.t() @ input, of the shapes [out,
// batch] @ [batch, in]. In a network that is divided by the samples of the batch, each
// device has its samples of `grad` and of `input`: rows of the inner dimension. Divided
// by rows of the result, each device would read all of both. So such a product is
// divided along the inner dimension: each device multiplies the samples that it has,
// and the partial sums are added. In the simulator (docs/auto.md) this takes 0.53 of
// one device's time on two devices, and a division by rows 2.9.
//
// It costs a copy of the partial sums, [out, in], which is small only if the inner
// dimension is long. Rejected: the division of other products along it. Unless the
// first operand is transposed, its columns are no range of bytes, and the copies of
// packed columns and of partial sums took longer than those of a division by rows.

// Whether a product of two matrices is divided in this way.
bool is_divided_inside(const at::Tensor& a, const at::Tensor& b);

// Computes the shards, and adds them. `multiply` computes the product of some columns
// of `a` and some rows of `b` on the device at a position.
using MultiplyInner = std::function<at::Tensor(const at::Tensor& a, const at::Tensor& b,
                                               size_t position)>;
at::Tensor add_inner_shards(const at::Tensor& a, const at::Tensor& b,
                            const ShardList& shards, const Ordinal& devices,
                            RowRun& run, const MultiplyInner& multiply);

}  // namespace xpurt
