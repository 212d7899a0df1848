"""The commands in the pages of measurements find the sections that they write."""

import shlex

import pytest
from pages import DOCS, blocks_of

from xpurt_tools.bench import markdown
from xpurt_tools.bench.suites import SUITES
from xpurt_tools.commands import policy_table, rank_check, rank_table

PAGES = sorted((DOCS / "measured").glob("*.md"))
SECTIONS = {
    (): (policy_table.TABLES, policy_table.CO_EXECUTION),
    ("--ranks",): (rank_table.TABLE,),
    ("--ranks", "--check"): (rank_check.TABLE,),
}


def commands(name: str) -> list[list[str]]:
    """Those of a page that write a page, after `python -m xpurt`."""
    lines = [
        shlex.split(line)
        for block in blocks_of(DOCS / "measured" / name)
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    return [words[3:] for words in lines if "--markdown" in words]


@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_a_command_finds_its_sections(name: str) -> None:
    text = (DOCS / "measured" / name).read_text()
    for command, *options in commands(name):
        at = options.index("--markdown")
        assert options[at + 1] == f"docs/measured/{name}"
        rest = options[:at] + options[at + 2 :]
        if command == "simulate":
            for section in SECTIONS[tuple(rest)]:
                section.of(text)
        else:
            assert rest[0] == "--suite"
            sections = [markdown.section(each) for each in rest[1:]]
            assert all(section.of(text) for section in sections)


def test_each_suite_with_a_section_is_in_the_command() -> None:
    (command,) = commands("performance.md")
    text = (DOCS / "measured" / "performance.md").read_text()
    with_section = {each.name for each in SUITES if f"bench {each.name}:" in text}
    assert with_section == set(command[command.index("--suite") + 1 :])
