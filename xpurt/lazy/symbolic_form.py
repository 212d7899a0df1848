"""One compiled form for graphs that differ in sizes: see Note [Sizes of lazy graphs]."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from xpurt.lazy.size_families import Pattern, Sized
from xpurt.lazy.traced_graph import FromSizes


def fakes_of(
    arguments: Sequence[Tensor], pattern: Pattern | None
) -> tuple[list[Tensor], Any]:
    """The arguments without data, with symbols for the sizes of the pattern, and the
    environment of these symbols. Without a pattern it has none, but Inductor keeps on disk
    only what was compiled with an environment."""
    from torch._dynamo.source import LocalSource
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        ShapeEnv,
        StatelessSymbolicContext,
    )

    symbols: set[tuple[int, int]] = set()
    if pattern is not None:
        symbols = {pattern.example.dimension(place) for place in pattern.symbols}
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    fakes: list[Tensor] = []
    for parameter, each in enumerate(arguments):
        sizes = [
            DimDynamic.DUCK if (parameter, of) in symbols else DimDynamic.STATIC
            for of in range(each.dim())
        ]
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        # With a source a number would be a symbol, too: see traced_graph.py.
        source = LocalSource(f"t{parameter}") if each.dim() else None
        fakes.append(mode.from_tensor(each, symbolic_context=context, source=source))
    return fakes, environment


def shapes_of(fakes: Sequence[Tensor]) -> tuple[str, ...]:
    """As "float32[s0, 20]", with symbols by their names."""
    return tuple(
        f"{str(each.dtype).removeprefix('torch.')}[{', '.join(map(str, each.shape))}]"
        for each in fakes
    )


def bounds_of(environment: Any) -> dict[str, tuple[int, int | None]]:
    """The least and the greatest size of each symbol that the code is for; None: there is
    no greatest one."""
    from torch.utils._sympy.numbers import int_oo

    return {
        str(symbol): (
            int(found.lower),
            None if found.upper is int_oo else int(found.upper),
        )
        for symbol, found in environment.var_to_range.items()
    }


def from_sizes_of(graph: Sized, pattern: Pattern) -> Mapping[str, FromSizes]:
    """The constants of the graph that follow from sizes, by the name of their value."""
    formulas: dict[str, dict[int, Any]] = {}
    for constant, formula in pattern.formulas.items():
        name, place = graph.names[constant]
        formulas.setdefault(name, {})[place] = formula

    def maker(of: dict[int, Any]) -> FromSizes:
        def value(parameters: Sequence[Tensor], before: Any) -> Any:
            sizes = [size for each in parameters for size in each.shape]
            if -1 in of:
                return of[-1].of(sizes)
            return [
                of[place].of(sizes) if place in of else each
                for place, each in enumerate(before)
            ]

        return value

    return {name: maker(of) for name, of in formulas.items()}
