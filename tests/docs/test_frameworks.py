"""The page of frameworks names each package that `make test-programs` installs."""

import re
import tomllib

from pages import ROOT

PAGE = (ROOT / "docs" / "frameworks.md").read_text()
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


def installed() -> set[str]:
    extras = ("programs", "quantization", "language")
    requirements = [each for extra in extras for each in EXTRAS[extra]]
    names = {re.split(r"[^\w-]", each)[0] for each in requirements} - {"xpurt"}
    return {name.replace("torch-geometric", "torch_geometric") for name in names}


def test_each_package_has_a_row() -> None:
    rows = set(re.findall(r"^\| ([\w-]+) [\d.]+ \|", PAGE, re.MULTILINE))
    assert rows == installed()
