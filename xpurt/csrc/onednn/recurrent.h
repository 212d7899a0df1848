// Layers of LSTM and GRU, and their gradients, by oneDNN on a stream's queue.
#pragma once

#include "op/recurrent.h"
#include "stream/stream.h"

namespace xpurt {

// Whether oneDNN has primitives for the layer (and for its gradients if `train`), and
// the layer has enough steps for them. Makes the primitives.
bool onednn_recurs(const PhysicalDevice& device, const RecurrentLayer& layer,
                   bool train);

// Only if onednn_recurs().
RecurrentResults onednn_recurrent(const RecurrentLayer& layer, bool train,
                                  size_t position, Stream& stream);

// `made`: the results of onednn_recurrent() with `train`, on the same device.
RecurrentTensors onednn_recurrent_gradients(const RecurrentLayer& layer,
                                            const RecurrentResults& made,
                                            const RecurrentResults& grads,
                                            size_t position, Stream& stream);

}  // namespace xpurt
