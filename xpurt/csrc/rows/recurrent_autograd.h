// The ops of recurrent layers with their gradient formula.
#pragma once

#include "op/recurrent.h"

namespace xpurt {

// Computes the layer on the device and tier that the scheduler chooses. The results
// have no workspace.
RecurrentResults recurrent_layer(RecurrentLayer layer);

}  // namespace xpurt
