// Layers of LSTM and GRU, and their gradients, through oneDNN on a stream's queue.
#pragma once

#include "op/recurrent.h"
#include "stream/stream.h"

namespace xpurt {

// Whether oneDNN has primitives for the layer, and for its gradients if `train`, and
// they are worth it. Makes them.
bool onednn_recurs(const PhysicalDevice& device, const RecurrentLayer& layer,
                   bool train);

// For what onednn_recurs.
RecurrentResults onednn_recurrent(const RecurrentLayer& layer, bool train,
                                  size_t position, Stream& stream);

// The workspace is that of onednn_recurrent on the same device.
RecurrentTensors onednn_recurrent_gradients(const RecurrentLayer& layer,
                                            const RecurrentResults& made,
                                            const RecurrentResults& grads,
                                            size_t position, Stream& stream);

}  // namespace xpurt
