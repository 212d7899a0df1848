"""`torch.compile` on xpu: graphs of xpu tensors become graphs of CPU tensors over the same
bytes, which Inductor compiles for the host.

Nothing is imported from here: `integrations` loads `inductor_hook` once Inductor is
imported.
"""
