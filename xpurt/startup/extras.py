"""Packages that only some programs and commands need, imported on demand."""

import importlib
from types import ModuleType


class MissingExtra(ModuleNotFoundError):
    """A package of one of xpurt's extras is not installed; the text is the remedy."""

    def __init__(self, wanted_by: str, package: str, extra: str = "demo") -> None:
        super().__init__(
            f"{wanted_by} wants {package}, which is not installed: "
            f'pip install "xpurt[{extra}]"',
            name=package,
        )


def needs(
    module: str, wanted_by: str, package: str | None = None, extra: str = "demo"
) -> ModuleType:
    """Imports a module of a package of the extra.

    package: the name to install, if it differs from the module's name.

    Raises MissingExtra if the package is not there. An error inside of a package that
    is there is raised as it is.
    """
    name = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != name:
            raise
        raise MissingExtra(wanted_by, package or name, extra) from None


def tool(module: str, wanted_by: str) -> ModuleType:
    """Imports a module of xpurt_tools, the package of the extra `tools`. Nothing else in
    xpurt imports that package. Raises MissingExtra as `needs` does."""
    return needs(f"xpurt_tools.{module}", wanted_by, "xpurt-tools", extra="tools")
