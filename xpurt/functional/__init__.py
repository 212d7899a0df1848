"""What the layers above eager mode know about activations and convolutions, as functions
of tensors and numbers: `xpurt.optimize`, frozen compiled graphs, `xpurt.quantize`,
autocast and fused ops read it here."""
