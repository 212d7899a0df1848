"""Ops that write to what their schemas call inputs: are all of them known?"""

import re
from pathlib import Path

import pytest
import torch
from lazy_copies.audit_silent_writes import audit

SOURCE = Path(__file__).parents[2] / "xpurt" / "csrc" / "op" / "op_record.cpp"

# Ops with running statistics that leave them as they are; of CUDA alone the last two.
HARMLESS = re.compile(r"backward|no_update|no_training|functional|cudnn_|miopen_")


def table() -> set[tuple[str, str]]:
    text = SOURCE.read_text().split("kSilentlyWritten[] = {")[1].split("};")[0]
    return set(re.findall(r'\{"([\w:.]+)",\s*"(\w+)"\}', text))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("nn.functional.batch_norm", ("aten::native_batch_norm", "running_var")),
        ("nn.LSTM", ("aten::mkldnn_rnn_layer_backward", "workspace")),
        ("nn.functional.rrelu", None),
        ("nn.functional.instance_norm", None),
        ("nn.functional.embedding", None),
        ("index_put", None),
    ],
)
def test_what_the_audit_finds_is_in_the_table(
    name: str, written: tuple[str, str] | None
) -> None:
    done = audit([name])
    assert done.seen
    assert done.found <= table()
    if written is not None:
        assert written in done.found


def test_every_op_with_running_statistics_is_known() -> None:
    known = table()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name + (schema.overload_name and f".{schema.overload_name}")
        if not name.startswith("aten::") or HARMLESS.search(name):
            continue
        for argument in schema.arguments:
            declared = argument.alias_info and argument.alias_info.is_write
            if argument.name in ("running_mean", "running_var") and not declared:
                assert (name, argument.name) in known


def test_the_table_names_what_there_is() -> None:
    arguments = {
        (schema.name + (schema.overload_name and f".{schema.overload_name}"), a.name)
        for schema in torch._C._jit_get_all_schemas()
        for a in schema.arguments
    }
    assert table() <= arguments
