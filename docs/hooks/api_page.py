"""Adapts griffe to this project's docstrings and imports, for the page of the API."""

import inspect
import re
from contextlib import suppress
from typing import Any

from griffe import (
    Alias,
    AliasResolutionError,
    CyclicAliasError,
    Extension,
    GriffeLoader,
    Module,
    Object,
)


class ApiPage(Extension):
    """Arguments in docstrings become a list, and functions win over modules."""

    def on_instance(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: Any) -> None:
        """`from xpurt.sharing.share import share` makes `xpurt.share` a function, which griffe
        takes for the submodule of that name."""
        modules = [pkg, *_modules_in(pkg)]
        clashes = [
            (module, name, found.members[name])
            for module in modules
            for name, target in module.imports.items()
            if isinstance(found := module.members.get(name), Module)
            and target == f"{found.path}.{name}"
            and name in found.members
        ]
        functions = {f"{module.path}.{name}": found for module, name, found in clashes}
        hidden = tuple(f"{path}." for path in functions)
        for module in modules:
            for member in module.members.values():
                if not isinstance(member, Alias):
                    continue
                if member.target_path in functions:
                    member.target = functions[member.target_path]
                elif member.target_path.startswith(hidden):
                    # Now, while its path does not yet lead through a function.
                    with suppress(AliasResolutionError, CyclicAliasError):
                        member.resolve_target()
        for module, name, function in clashes:
            module.members[name] = Alias(name, function, parent=module)


def _modules_in(module: Module) -> list[Module]:
    found = []
    for member in module.members.values():
        if isinstance(member, Module) and not member.is_alias:
            found += [member, *_modules_in(member)]
    return found


_ARGUMENT = re.compile(
    r"(?P<names>\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*): (?P<text>.+)"
)


def as_markdown(docstring: str) -> str:
    """Lines that begin with `name: ` are items of a list, and `::` begins code."""
    lines: list[str] = []
    in_list = False
    for line in inspect.cleandoc(docstring).splitlines():
        argument = _ARGUMENT.fullmatch(line)
        if argument:
            if not in_list and lines and lines[-1]:
                lines.append("")
            names = argument["names"].replace(", ", "`, `")
            lines.append(f"- `{names}`: {argument['text']}")
            in_list = True
            continue
        if in_list and line and not line.startswith(" "):
            in_list = False
            if lines[-1]:
                lines.append("")
        lines.append(re.sub(r"::$", ":", line))
    return "\n".join(lines)
