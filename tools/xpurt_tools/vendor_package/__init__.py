"""A vendor's package for a new device: files to begin with, and tests that pass."""

from pathlib import Path
from string import Template

TEMPLATE = Path(__file__).with_name("template")


def write_package(name: str, key: str, folder: Path) -> list[Path]:
    """Writes the package for the device type `name`, whose dispatch key is `key`, into
    `folder`, and returns the files.

    Raises FileExistsError if one of them is there already; nothing is written then.
    """
    package = f"{name}_backend"
    given = {"name": name, "package": package, "key": key}
    files = {}
    for path in sorted(TEMPLATE.rglob("*.template")):
        parts = path.relative_to(TEMPLATE).with_suffix("").parts
        target = folder.joinpath(
            *(package if part == "package" else part for part in parts)
        )
        files[target] = Template(path.read_text()).substitute(given)
    for target in files:
        if target.exists():
            raise FileExistsError(
                f"{target} is there already. Give another folder with --folder."
            )
    for target, text in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return list(files)
