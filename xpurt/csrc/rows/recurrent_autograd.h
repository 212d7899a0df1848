// The ops of recurrent layers with their gradient formula.
#pragma once

#include "op/recurrent.h"

namespace xpurt {

// By whatever the scheduler finds best. The results have no workspace.
RecurrentResults recurrent_layer(const RecurrentLayer& layer);

}  // namespace xpurt
