// PyTorch's ops that are a whole layer with attention, with its linear layers.
#pragma once

namespace xpurt {

// Note [Autocast of whole layers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// nn.TransformerEncoderLayer and nn.MultiheadAttention call one op in evaluation mode.
// They leave it out under autocast, but ask for the autocast of CUDA alone. PyTorch's
// lists of autocast have no such op: its kernel for the CPU calls `linear`, which is
// cast there. Here that kernel gets CPU tensors of the same bytes, for which the
// autocast of another device does nothing: the layer was computed in float32, and
// raised an error for an input in bfloat16. So these ops are cast as products are, and
// give the dtype that they have on the CPU.
inline constexpr const char* kAttentionLayers[] = {
    "aten::_native_multi_head_attention",
    "aten::_transformer_encoder_layer_fwd",
};

}  // namespace xpurt
