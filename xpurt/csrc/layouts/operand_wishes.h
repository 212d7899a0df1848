// Which operands an op of another library wants in which type and layout.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

namespace xpurt {

// Of one argument that is a tensor, or a list of them. Others are plain, in their type.
struct OperandWish {
  std::string argument;
  std::optional<c10::ScalarType> type;
  bool type_of_block = false;     // that of torch.autocast where it is enabled
  bool is_channels_last = false;  // for four or five dimensions
};

// From now on blocks give the op such operands. `op` is "library::op", or
// "library::op.overload". Raises ValueError if there is no such op or argument, or if
// the op has wishes already.
void register_operand_wishes(const std::string& op,
                             const std::vector<OperandWish>& wishes);

}  // namespace xpurt
