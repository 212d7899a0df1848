"""Programs that nobody thought of: a module made of drawn steps, and what happens to it
between its calls.

A step is a piece of a forward as users write them: layers, helpers that ask for types,
flags and containers, shared parameters, writes in place, views, decisions by sizes and by
values, side effects. An event changes an attribute, a child, a hook, a weight, the mode
or the sizes, or makes a copy.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any, Final

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

SIZE: Final = 6

_OUTSIDE: dict[str, float] = {"scale": 1.0}


class Config:
    def __init__(self) -> None:
        self.act, self.scale, self.deep = "relu", 0.5, {"shift": 0.25}


class Leaf(nn.Module):
    """A child with a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(SIZE, SIZE)
        self.slope, self.negative = 0.1, False

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        y = F.leaky_relu(self.inner(x), self.slope)
        y = y if plus is None else y + plus
        return -y if self.negative else y


def _activated(x: Any, name: str) -> Any:
    """As a helper in a model's file."""
    if not isinstance(x, Tensor):
        return x
    return getattr(F, name)(x) if hasattr(F, name) else x


class Generated(nn.Module):
    """Its forward runs the steps in their order. x: (batch, SIZE)."""

    kept: Tensor

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self.steps = steps
        self.one, self.two = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE, bias=False)
        self.tied = nn.Linear(SIZE, SIZE)
        self.tied.weight = self.one.weight
        self.wide = nn.Sequential(nn.Linear(SIZE, 9), nn.GELU(), nn.Linear(9, SIZE))
        self.leaf, self.leaky = Leaf(), nn.LeakyReLU(0.2)
        self.norm, self.layer_norm = nn.BatchNorm1d(SIZE), nn.LayerNorm(SIZE)
        self.image = nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU6(inplace=True)
        )
        self.drop = nn.Dropout(0.5)
        self.several = nn.ModuleDict({"a": nn.Linear(SIZE, SIZE), "b": nn.Tanh()})
        self.chain = nn.ModuleList([nn.Linear(SIZE, SIZE), nn.Sigmoid()])
        self.config, self.options = Config(), {"act": "silu", "order": [1.0, 2.0]}
        self.flag, self.calls, self.seen = False, 0, []
        self.register_buffer("kept", torch.zeros(SIZE))
        for each in (self.norm, self.image[1]):
            nn.init.normal_(each.running_mean, 0, 0.3)
            nn.init.uniform_(each.running_var, 0.5, 2)

    def forward(self, x: Tensor, extra: Tensor | None = None) -> Any:
        given, results = x, []
        for step in self.steps:
            x = STEPS[step](self, x, given)
            if step.startswith("keep"):
                results.append(x)
        if extra is not None:
            x = x + extra
        return (x, *results) if self.flag else {"y": x, "kept": results}


Step = Callable[[Generated, Tensor, Tensor], Tensor]


def _counted(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    m.calls += 1
    m.seen.append(len(x))
    return x * (1 + m.calls % 3)


def _buffered(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    m.kept.add_(x.detach().mean(0))
    return x + m.kept


def _tried(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    try:
        if x.shape[0] == 3:
            raise ValueError(x.shape)
        return m.two(x).relu()
    except ValueError:
        return m.two(x).tanh()


def _by_value(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    y = m.one(x)
    return y.relu() if x.abs().sum() > 3 else y - 1


def _written_between(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    x = x.clone()
    y = m.one(x)
    x.mul_(0.5)
    return F.relu(y + x)


def _normed(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
    return m.layer_norm.weight * (x * scale)


def _attention(m: Generated, x: Tensor, _: Tensor) -> Tensor:
    q, k, v = (each(x).view(-1, 1, 2, 3) for each in (m.one, m.two, m.tied))
    scores = q @ k.transpose(-2, -1) * 0.5
    return (scores.softmax(-1) @ v).reshape(x.shape)


def _added_image(m: Generated, x: Tensor, given: Tensor) -> Tensor:
    image, other = x[:, None, None], given[:, None, None]
    return (m.image[:2](image) + other.repeat(1, 2, 1, 1)).mean((1, 2))


def _rows(x: Tensor) -> Iterator[Tensor]:
    yield from x.unbind(0)


STEPS: Final[dict[str, Step]] = {
    "linear": lambda m, x, _: m.one(x),
    "linear, relu": lambda m, x, _: F.relu(m.two(x)),
    "linear, added, relu": lambda m, x, given: (m.one(x) + given).relu(),
    "tied": lambda m, x, _: m.tied(x).sigmoid(),
    "weight itself": lambda m, x, _: F.linear(x, m.one.weight.t(), m.one.bias),
    "wide": lambda m, x, _: m.wide(x),
    "leaf": lambda m, x, _: m.leaf(x),
    "leaf with an argument": lambda m, x, given: m.leaf(x, plus=given),
    "leaky child": lambda m, x, _: m.leaky(m.one(x)),
    "norm": lambda m, x, _: m.norm(m.two(x)),
    "layer norm": lambda m, x, _: m.layer_norm(x),
    "rms norm": _normed,
    "attention": _attention,
    "image": lambda m, x, _: m.image(x[:, None, None]).mean((1, 2)),
    "image, added": _added_image,
    "dropout": lambda m, x, _: m.drop(m.one(x)).relu(),
    "dict of modules": lambda m, x, _: m.several["b"](m.several["a"](x)),
    "list of modules": lambda m, x, _: m.chain[1](m.chain[0](x)),
    "helper": lambda m, x, _: _activated(m.one(x), "relu"),
    "option": lambda m, x, _: _activated(m.one(x), m.options["act"]),  # type: ignore[arg-type]
    "config": lambda m, x, _: _activated(m.two(x), m.config.act) * m.config.scale,
    "deep config": lambda m, x, _: m.one(x) + m.config.deep["shift"],
    "list of numbers": lambda m, x, _: x * sum(m.options["order"]),  # type: ignore[arg-type]
    "outside": lambda m, x, _: F.relu(m.two(x)) * _OUTSIDE["scale"],
    "is a tensor": lambda m, x, _: m.one(x) if torch.is_tensor(x) else x,
    "counted": _counted,
    "buffer": _buffered,
    "tried": _tried,
    "by value": _by_value,
    "by size": lambda m, x, _: m.one(x).relu() if len(x) > 2 else m.two(x),
    "in place": lambda m, x, _: m.one(x).relu_().add_(1),
    "added in place": lambda m, x, given: m.two(x).add_(given),
    "written between": _written_between,
    "chunks": lambda m, x, _: torch.cat(m.one(x).chunk(2, -1)[::-1], -1),
    "view": lambda m, x, _: m.one(x).view(-1, 2, 3).transpose(1, 2).reshape(x.shape),
    "generator": lambda m, x, _: torch.stack([*_rows(m.two(x))]),
    "item": lambda m, x, _: m.one(x) * round(float(x[0, 0].detach()) % 1, 3),
    "keep": lambda m, x, _: x,
    "keep a view": lambda m, x, _: x[:, 1:].T.T if x.is_contiguous() else x,
    "no gradients": lambda m, x, _: _without_gradients(m, x),
}
# It changes the number of features, so it is the last one.
LAST: Final = "keep a view"


def _without_gradients(m: Generated, x: Tensor) -> Tensor:
    with torch.no_grad():
        return F.gelu(m.one(x))


Event = Callable[[Generated], Any]


def _halved(m: Generated) -> None:
    with torch.no_grad():
        m.one.weight.mul_(0.5)


def _another_forward(m: Generated) -> None:
    def forward(leaf: Leaf, x: Tensor, plus: Tensor | None = None) -> Any:
        return leaf.inner(x) * 2

    m.leaf.forward = MethodType(forward, m.leaf)  # type: ignore[method-assign]


def _counts(module: Any, *_: Any) -> None:
    module.calls = getattr(module, "calls", 0) + 1


def _loaded(m: Generated) -> None:
    m.load_state_dict({name: each * 0.75 for name, each in m.state_dict().items()})


EVENTS: Final[dict[str, Event]] = {
    "nothing": lambda m: None,
    "slope": lambda m: setattr(m.leaky, "negative_slope", 0.9),
    "slope of a leaf": lambda m: setattr(m.leaf, "slope", m.leaf.slope + 0.3),
    "flag": lambda m: setattr(m, "flag", not m.flag),
    "flag of a leaf": lambda m: setattr(m.leaf, "negative", not m.leaf.negative),
    "eps": lambda m: setattr(m.norm, "eps", 0.5),
    "eps of images": lambda m: setattr(m.image[1], "eps", 0.25),
    "option": lambda m: m.options.update(act="tanh"),
    "number in a list": lambda m: m.options["order"].append(0.5),  # type: ignore[attr-defined]
    "config": lambda m: setattr(m.config, "act", "gelu"),
    "scale": lambda m: setattr(m.config, "scale", m.config.scale + 0.25),
    "deep": lambda m: m.config.deep.update(shift=0.75),
    "outside": lambda m: _OUTSIDE.update(scale=_OUTSIDE["scale"] + 0.5),
    "weight": _halved,
    "statistics": lambda m: m.norm.running_var.mul_(2),
    "another child": lambda m: setattr(m, "leaky", nn.Softplus()),
    "longer child": lambda m: m.wide.append(nn.ReLU()),
    "another activation": lambda m: m.several.update({"b": nn.ReLU()}),
    "untied": lambda m: setattr(m.tied, "weight", nn.Parameter(m.two.weight.clone())),
    "another forward": _another_forward,
    "loaded": _loaded,
    "hook": lambda m: m.one.register_forward_hook(lambda *given: given[2] * 2),
    "hook before": lambda m: m.two.register_forward_pre_hook(
        lambda _, given: (given[0] + 1,)
    ),
    "hook that counts": lambda m: m.norm.register_forward_hook(_counts),
    "hook of the model": lambda m: m.register_forward_pre_hook(
        lambda _, given: (given[0] * 3, *given[1:])
    ),
    "no hooks": lambda m: [each._forward_hooks.clear() for each in m.modules()],
    "train": lambda m: m.train(),
    "part in training": lambda m: m.norm.train(),
    "eval": lambda m: m.eval(),
}
COPY: Final = "copy"
GLOBAL_HOOK: Final = "global hook"


def programs() -> st.SearchStrategy[tuple[list[str], list[tuple[str, int, bool]]]]:
    """The steps; then of each call the event before it, the batch, and whether it has
    the optional argument."""
    steps = st.lists(st.sampled_from(sorted({*STEPS} - {LAST})), min_size=1, max_size=6)
    events = st.sampled_from([*EVENTS, COPY, GLOBAL_HOOK])
    calls = st.tuples(events, st.sampled_from([2, 2, 3, 5]), st.booleans())
    ended = st.tuples(steps, st.booleans()).map(lambda s: s[0] + [LAST] * s[1])
    return st.tuples(ended, st.lists(calls, min_size=2, max_size=5))


def made(steps: list[str]) -> Generated:
    _OUTSIDE["scale"] = 1.0
    torch.manual_seed(len(steps))
    return Generated(steps).eval()


def after(event: str, module: Generated, outside: float) -> Generated:
    """The module after an event; `outside` is the global number before it."""
    _OUTSIDE["scale"] = outside
    if event == COPY:
        return copy.deepcopy(module)
    if event in EVENTS:
        EVENTS[event](module)
    return module


def outside() -> float:
    return _OUTSIDE["scale"]


@contextmanager
def hooked(event: str) -> Iterator[None]:
    """With a hook on all modules, if the event is that."""
    if event != GLOBAL_HOOK:
        yield
        return
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, _, y: y + 1 if isinstance(module, nn.Linear) else None
    )
    try:
        yield
    finally:
        handle.remove()


def state_of(module: Generated) -> tuple[Any, ...]:
    """What a call may have changed beside its result."""
    of_norm = module.norm.running_mean, getattr(module.norm, "calls", 0)
    return module.kept.clone(), *of_norm, module.calls, [*module.seen]
