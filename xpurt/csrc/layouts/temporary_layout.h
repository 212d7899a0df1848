// Tensors that are in another layout for a while, where PyTorch's own autocast makes
// plain ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace xpurt {

// Whether tensors with so many dimensions may be in channels last, and the format.
inline bool has_channels_last(int64_t dimensions) {
  return dimensions == 4 || dimensions == 5;
}
inline at::MemoryFormat channels_last(int64_t dimensions) {
  return dimensions == 4 ? at::MemoryFormat::ChannelsLast
                         : at::MemoryFormat::ChannelsLast3d;
}

// In channels last, and not contiguous at the same time.
inline bool is_channels_last_alone(const at::Tensor& tensor) {
  return has_channels_last(tensor.dim()) && !tensor.is_contiguous() &&
         tensor.is_contiguous(channels_last(tensor.dim()));
}

// Note [Temporary layouts]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A convolution in a block of autocast makes its result in channels last, and ops hand
// the layout on, or make another one of it, as a mean over images does. Within the
// block such a tensor is a strided tensor as any other. But programs written for plain
// tensors make views that channels last does not have, and draw random numbers in the
// order of the memory. So ops that make a view, or draw, get a plain tensor, and at the
// end of the block the tensors that the program holds become plain. The tensor object
// stays: it gets other memory and strides, so gradients, versions and all names of it
// stay, too.
//
// This is sound if nothing else looks at the memory. It is known for each tensor:
// - another tensor or a storage object of Python shares the storage: the storage has
//   more owners than when the op had made it (autograd may have saved the result by a
//   tensor of its own, which is a constant); copies of the tensor that no op made, as
//   `tensor.data`, are counted by what they copy, an AliasCount;
// - somebody got a pointer to write by, as numpy() and data_ptr() do: then the
//   storage's materializer was called, which is set between ops.
// A tensor that is looked at keeps its layout: strides say so, and a view that there is
// not raises PyTorch's error.
//
// A graph of xpu that is recorded now runs later, so no tensor is made plain then.

// Notes a new tensor that an op has made of one, if it fills its memory in another
// order than a plain one.
void note_temporary(const at::Tensor& tensor);

bool is_temporary(const at::Tensor& tensor);

// Makes it plain, if it has a temporary layout. Returns false if it keeps that, since
// something else looks at its memory.
bool make_plain(const at::Tensor& tensor);

// The tensor, made plain, or a plain copy of one that keeps its layout.
at::Tensor plain(const at::Tensor& tensor);

// Before and after an op that gets the tensor: what the op does with the memory is not
// seen by the program. For each tensor once.
void begin_use(c10::TensorImpl& tensor);
void end_use(c10::TensorImpl& tensor);

// Those of this thread that have been objects of Python.
std::vector<at::Tensor> known_to_python();

// From now on those of this thread are tensors as any other, in channels last.
void forget_temporaries();

// How many of this thread are alive.
size_t count_temporaries();

}  // namespace xpurt
