// Convolutions and their gradients through oneDNN on a stream's queue.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "stream/stream.h"

namespace xpurt {

// One convolution, in the words of aten::convolution: input (N, C, ...), weight
// (O, C / groups, ...), or (C, O / groups, ...) if transposed.
struct Convolution {
  at::Tensor input, weight;
  at::Tensor bias;  // or undefined
  std::vector<int64_t> stride, padding, dilation;
  bool transposed = false;
  std::vector<int64_t> output_padding;
  int64_t groups = 1;

  int64_t axes() const { return input.dim() - 2; }
  // Whether sizes, and lengths of lists, fit each other, and no tensor is empty.
  bool is_sound() const;
  std::vector<int64_t> output_sizes() const;
  // Products of two numbers, and sums.
  int64_t multiply_adds() const;
  // What PyTorch gives results: channels last if an operand has them so.
  at::MemoryFormat memory_format() const;
};

enum class ConvolutionPart { output, input_gradient, weight_gradient };

// Whether oneDNN has a primitive for the part, and one that is better than its
// reference. The operands are of one type; `with_bias` is about the bias, or its
// gradient along with the weight's. Makes the primitive.
bool onednn_convolves(const PhysicalDevice& device, const Convolution& convolution,
                      ConvolutionPart part, bool with_bias);

// For what onednn_convolves. Results have the convolution's memory format.
at::Tensor empty_output(const Convolution& convolution);
void onednn_convolution(const Convolution& convolution, const at::Tensor& output,
                        size_t position, Stream& stream);

// Gradients of the input, the weight and the bias; undefined where not wanted.
std::array<at::Tensor, 3> onednn_convolution_gradients(const Convolution& convolution,
                                                       const at::Tensor& grad,
                                                       std::array<bool, 3> wanted,
                                                       size_t position, Stream& stream);

}  // namespace xpurt
