// One op on several devices at once: each computes some rows of the result.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <vector>

#include "device_override.h"
#include "policy.h"
#include "program.h"

namespace xpurt {

// Note [Splitting]
// ~~~~~~~~~~~~~~~~
// A row that can compute parts of its result asks split() for the parts, and runs
// itself once for each on narrowed operands, under OnPiece. The parts are disjoint
// ranges of the result's bytes, and stay where they were computed (Note [Pieces]): a
// chain of ops that are split alike moves nothing.
struct Piece {
  size_t position;  // of the device in the ordinal
  int64_t begin;    // rows
  int64_t end;

  int64_t rows() const { return end - begin; }
};
using PieceList = std::vector<Piece>;

// For tests: whether set_split_shares() wants such an op split.
bool is_asked_to_split(const OpCost& cost, Stream& stream);

// Whether the current op is to be split, if its result has rows enough.
bool may_split(const OpCost& cost, Stream& stream, const RowRun& run);

// The pieces of an op whose result has so many rows; empty if it is not to be split.
// Pieces begin at multiples of `unit` rows. The run keeps who does how much.
PieceList split(const OpCost& cost, int64_t rows, int64_t unit, Stream& stream,
                RowRun& run);

// The same by rows of these tensors; empty as well if one has others, or none that are
// apart, or if there is none.
PieceList split_rows(const OpCost& cost, at::ArrayRef<at::Tensor> tensors,
                     Stream& stream, RowRun& run);

// A piece of the run begins on the device.
void note_piece(const PhysicalDevice& device, RowRun& run);

// A piece of it runs at home instead, since its device threw this: the call's times say
// nothing. A device that failed is taken out.
void note_moved_piece(const std::exception_ptr& error, RowRun& run);

// Note [Order of pieces]
// ~~~~~~~~~~~~~~~~~~~~~~
// An op that threw may be run again as a whole, or by the native kernel; in place, what
// was done of it would then be done twice. So the home device's piece comes first: what
// it throws leaves the op undone. Whatever other devices throw after it (they have no
// room, fail, or their kernel is still being built), their pieces are done at home,
// which waits for the kernel.

// Calls `compute` for each piece.
template <typename Compute>
void run_pieces(const PieceList& pieces, const Ordinal& devices, RowRun& run,
                const Compute& compute) {
  const auto run_at = [&](size_t position, Piece piece) {
    const OnPiece scope(static_cast<int>(position));
    note_piece(*devices.devices[position], run);
    piece.position = position;
    compute(piece);
  };
  for (const Piece& piece : pieces) {
    if (piece.position == devices.home) run_at(devices.home, piece);
  }
  for (const Piece& piece : pieces) {
    if (piece.position == devices.home) continue;
    try {
      run_at(piece.position, piece);
    } catch (...) {
      note_moved_piece(std::current_exception(), run);
      const WaitsForBuilds all{BuildWaits{}};
      run_at(devices.home, piece);
    }
  }
}

// A view of the same memory, as kernels of ours want it.
at::Tensor view_of(const at::TensorBase& tensor, c10::IntArrayRef sizes,
                   c10::IntArrayRef strides, int64_t offset);

// Rows of the tensor along a dimension.
at::Tensor rows_of(const at::TensorBase& tensor, const Piece& piece, int64_t dim = 0);

inline int64_t rows_in(const at::TensorBase& tensor) {
  return tensor.dim() == 0 ? 0 : tensor.size(0);
}

// Whether rows along that dimension are disjoint ranges of memory.
bool has_apart(c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t dim);
inline bool has_rows_apart(const at::TensorBase& tensor, int64_t dim = 0) {
  return has_apart(tensor.sizes(), tensor.strides(), dim);
}

// For tests: what of its work each device is to do, by position. Splits all work that
// reads and writes at least so many bytes, with pieces that begin at multiples of
// `unit`, if it is not 0. No shares take it back.
void set_split_shares(std::vector<double> shares, double least_bytes, int64_t unit);

// How many pieces ran on each device of an ordinal so far.
std::vector<uint64_t> pieces_run(c10::DeviceIndex index);

}  // namespace xpurt
