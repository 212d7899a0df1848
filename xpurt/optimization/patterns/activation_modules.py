"""Modules that are an activation."""

from torch import nn

from xpurt.optimization import activations
from xpurt.optimization.activations import Activation
from xpurt.optimization.own_forward import NotTraceable, trace
from xpurt.optimization.patterns.graph_calls import child_of


def activation_of(module: nn.Module) -> Activation | None:
    """That of a module of PyTorch, or of one whose forward does nothing but call one."""
    known = activations.of_module(module)
    if known is not None or module.state_dict():
        return known
    try:
        nodes = list(trace(module).nodes)
    except NotTraceable:
        return None
    if len(nodes) != 3 or nodes[2].op != "output" or nodes[1].args[:1] != (nodes[0],):
        return None
    child = child_of(module, nodes[1])
    if child is not None:
        return activation_of(child)
    return activations.of_call(nodes[1].target, nodes[1].args, nodes[1].kwargs)
