// A convolution and what follows it as one primitive of oneDNN, for compiled graphs.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "onednn/fused_operands.h"
#include "stream/stream.h"

namespace xpurt {

// Note [Formats of images]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// The primitives for convolutions have images in a format of their own: in float32 on a
// processor with AVX-512, 16 channels of a pixel are adjacent, and blocks of channels
// are as planes. No strides describe that for a tensor (N, C, H, W), but they do for
// one of (N, C / 16, H, W, 16). So a compiled graph keeps such images as ordinary
// tensors with a dimension more, and its kernels read them through a permuted view. A
// format is a number: 0 is PyTorch's contiguous format, 1 is channels last, and any
// other number is that of adjacent channels.
constexpr int64_t kContiguous = 0, kChannelsLast = 1;

// The input is (N, C, ...) in any strides, or in blocks; the weight (O, C / groups,
// ...), the bias (O); `other` has the result's format.
struct FusedConvolution : FusedOperands {
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
  // In which the primitive reads the input and writes the result.
  int64_t input_format = kContiguous, format = kContiguous;

  size_t axes() const { return weight_sizes.size() - 2; }
  bool is_blocked() const;                    // the input
  std::vector<int64_t> input_sizes() const;   // (N, C, ...)
  std::vector<int64_t> output_sizes() const;  // (N, O, ...)
  int64_t multiply_adds() const;
  at::Tensor empty_output() const;
  // Throws ValueError if the sizes do not match, or if a tensor is empty.
  void check() const;
  // Throws ValueError if `other` is not in the format of the result, which it need not
  // be to pack a weight.
  void check_addition() const;
};

// An uninitialized tensor of (N, C, ...) in a format.
at::Tensor empty_images(at::IntArrayRef sizes, int64_t format,
                        const at::TensorOptions& options);

// Whether oneDNN has a primitive that is better than its reference implementation.
bool onednn_fuses(const PhysicalDevice& device, const FusedConvolution& convolution);

// The formats of input and result for which oneDNN's primitive is fastest; nothing if
// it has none. Elements of the tensors are not read.
using Formats = std::pair<int64_t, int64_t>;
std::optional<Formats> preferred_formats(const PhysicalDevice& device,
                                         const FusedConvolution& convolution);

// The bytes of the weight in the layout that the primitive requires, so that a call
// does not reorder it; undefined if it is in that layout. Only if onednn_fuses().
at::Tensor pack_weight(const FusedConvolution& convolution, size_t position,
                       Stream& stream);

// Writes the result to `output`. Only if onednn_fuses().
void onednn_fused(const FusedConvolution& convolution, const at::Tensor& output,
                  size_t position, Stream& stream);

}  // namespace xpurt
