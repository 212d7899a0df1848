"""torch.distributed on xpu: the backend `xccl`."""
