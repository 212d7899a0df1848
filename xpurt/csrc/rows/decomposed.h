// Ops that are computed by other ops, as Python functions define them.
#pragma once

#include <functional>
#include <optional>

#include "host/mutex.h"
#include "op/row_spec.h"

namespace xpurt {

struct DecomposedSpec : RowSpec {
  explicit DecomposedSpec(RowFields& fields)
      : RowSpec(fields),
        same_type(fields.take<bool>("same_type")),
        of_kind(fields.take<bool>("of_kind")),
        converts(fields.take<bool>("converts")),
        native_on_cpu(fields.take<bool>("native_on_cpu")),
        result(fields.take<std::string>("result")),
        lays_out(fields.take<bool>("lays_out")) {}
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;

  bool same_type;  // a call with tensors of several types is left to PyTorch
  bool of_kind;    // so is one whose first tensor has a type that the kind lacks
  bool converts;   // an out= may be of any type that the result can be cast to
  // The type of results by that of the first tensor: "same", "complex", "real".
  c10::ScalarType result_type(c10::ScalarType first) const;

  bool native_on_cpu;  // on a CPU the policy `auto` takes PyTorch's kernel, untried
  std::string result;
  bool lays_out;  // an out= of another size takes the strides of a new result
};

// Computes one overload of a row's op by a function of its arguments without those of
// out=.
class Decomposition {
 public:
  // nullptr if the overload has no functional form, or writes to a list of tensors.
  static std::unique_ptr<Decomposition> of(const DecomposedSpec& spec,
                                           const Overload& overload);
  Decomposition(const DecomposedSpec& spec, const c10::OperatorHandle& op,
                c10::OperatorHandle functional);

  bool accepts(const torch::jit::Stack& stack) const;
  void run(torch::jit::Stack* stack) const;
  // Whether the function writes to the op's arguments.
  bool writes_itself() const { return writes_itself_; }

 private:
  c10::OperatorHandle form() const;

  const DecomposedSpec& spec_;
  const c10::OperatorHandle op_, functional_;
  int arguments_ = 0;
  int outs_ = 0;
  int rate_ = -1;  // position of a learning rate, which may be a CPU tensor of 0 dims
  bool has_meta_;  // see Note [Structured meta functions]
  bool has_cpu_kernel_;
  bool writes_itself_ = false;
  std::vector<int> written_;  // positions of arguments that the op writes
  mutable Mutex mutex_{Rank::decomposition};
  mutable std::optional<c10::OperatorHandle> form_;
};

// Defines an op, with the schema of the overload, that computes a row's overload by
// other ops. Returns its name. Called once per overload.
using FormMaker = std::function<c10::OperatorName(int row, const c10::OperatorName&)>;
void set_form_maker(FormMaker maker);

}  // namespace xpurt
