"""torch.compile on device types whose tensors are those of another device under their own
name: `devices` has what a room above registers, `graphs` what is changed of Inductor.
"""
