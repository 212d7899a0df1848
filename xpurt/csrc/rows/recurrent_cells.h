// A layer of an LSTM or a GRU step by step, by the fused cells of PyTorch.
#pragma once

#include "op/recurrent.h"

namespace xpurt {

// All its ops have gradient formulas. With `train` the workspace is made, too.
RecurrentResults layer_by_cells(const RecurrentLayer& layer, bool train);

// `made`: the results of layer_by_cells() with `train`.
RecurrentTensors gradients_by_cells(const RecurrentLayer& layer,
                                    const RecurrentResults& made,
                                    const RecurrentResults& grads);

}  // namespace xpurt
