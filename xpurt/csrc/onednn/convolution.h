// Convolutions and their gradients by oneDNN on a stream's queue.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "stream/stream.h"

namespace xpurt {

// One convolution, with the arguments of aten::convolution: input (N, C, ...), weight
// (O, C / groups, ...), or (C, O / groups, ...) if transposed.
struct Convolution {
  at::Tensor input, weight;
  at::Tensor bias;  // or undefined
  std::vector<int64_t> stride, padding, dilation;
  bool transposed = false;
  std::vector<int64_t> output_padding;
  int64_t groups = 1;

  int64_t axes() const { return input.dim() - 2; }
  // Whether the sizes and the lengths of the lists match, and no tensor is empty.
  bool is_sound() const;
  std::vector<int64_t> output_sizes() const;
  // The number of multiply-adds.
  int64_t multiply_adds() const;
  // The memory format that PyTorch gives the result: channels last if the input or the
  // weight has it.
  at::MemoryFormat memory_format() const;
};

enum class ConvolutionPart { output, input_gradient, weight_gradient };

// Whether oneDNN has a primitive for the part that is better than its reference
// implementation. The operands have one type. `with_bias`: with the bias, or with its
// gradient beside the weight's. Makes the primitive.
bool onednn_convolves(const PhysicalDevice& device, const Convolution& convolution,
                      ConvolutionPart part, bool with_bias);

// Only if onednn_convolves(). Results have the convolution's memory format.
at::Tensor empty_output(const Convolution& convolution);
void onednn_convolution(const Convolution& convolution, const at::Tensor& output,
                        size_t position, Stream& stream);

// Gradients of the input, the weight and the bias; undefined if not wanted.
using ConvolutionGradients = std::array<at::Tensor, 3>;
ConvolutionGradients empty_gradients(const Convolution& convolution,
                                     std::array<bool, 3> wanted);
// Computes those gradients that are defined.
void onednn_convolution_gradients(const Convolution& convolution,
                                  const at::Tensor& grad,
                                  const ConvolutionGradients& gradients,
                                  size_t position, Stream& stream);

}  // namespace xpurt
