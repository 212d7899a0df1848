"""The bench's language model, in its forms and in llama.cpp's file."""

from pathlib import Path

import gguf
import pytest
import torch

import xpurt
from xpurt_tools.bench import language_model
from xpurt_tools.bench.language_model import Call, Shape, made
from xpurt_tools.bench.llama_cpp import llama_cpp_call, write_model
from xpurt_tools.bench.row import Unavailable
from xpurt_tools.bench.suites import language

SMALL = Shape(layers=2, width=64, inner=128, heads=4, groups=2, words=100)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "SHAPE", SMALL)


def test_a_token_after_others_is_that_of_the_whole_text() -> None:
    whole, _ = made(SMALL, Call(9, batch=2))
    step, _ = made(SMALL, Call(1, past=8, batch=2))
    whole, step = whole.float(), step.float()
    step.load_state_dict(dict(whole.named_parameters()), strict=False)
    text = torch.randint(100, (2, 9))
    with torch.no_grad():
        wanted = whole(text)
        for layer, of_whole in zip(step.layers, whole.layers, strict=True):
            assert isinstance(layer, language_model.Layer)
            layer.keys.copy_(of_whole.keys)
            layer.values.copy_(of_whole.values)
        step.cosines.copy_(whole.cosines[-1:])
        step.sines.copy_(whole.sines[-1:])
        found = step(text[:, -1:])
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("call", [Call(8), Call(1, 8), Call(1, 8, 4)], ids=str)
@pytest.mark.parametrize("form", language.FORMS)
def test_forms_compute_the_model(form: str, call: Call) -> None:
    with xpurt.xpu_mapping("CPU"):
        check_form(form, call)


def check_form(form: str, call: Call) -> None:
    wanted = language._call(call, language.FORMS["bf16"], "cpu")()
    for kind in ("cpu", "xpu"):
        found = language._call(call, language.FORMS[form], kind)()
        assert isinstance(wanted, torch.Tensor)
        assert isinstance(found, torch.Tensor)
        error = (found.cpu().float() - wanted.float()).norm() / wanted.float().norm()
        assert error < {"int4": 0.2, "int8": 0.03}.get(form, 0.03)


def test_rows_are_named_after_what_they_do() -> None:
    rows = {row.name: row for row in language.LANGUAGE.rows}
    assert len(rows) == 6 * 4 * 2
    token = rows["a token after 128, int4, cpu tensors"]
    assert token.others_at_most == {"llama.cpp": 0.9, "reading": 1.25}
    prompt = rows["a prompt of 128, int8, cpu tensors"]
    assert prompt.others_at_most == {"optimized bf16": 1.1}


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "BF16"])
def test_the_file_holds_the_model(kind: str, tmp_path: Path) -> None:
    write_model(tmp_path / "model.gguf", SMALL, kind)
    file = gguf.GGUFReader(tmp_path / "model.gguf")
    tensors = {tensor.name: tensor for tensor in file.tensors}
    assert len(tensors) == 3 + 9 * SMALL.layers
    assert list(tensors["blk.1.ffn_down.weight"].shape) == [128, 64]
    assert tensors["blk.1.ffn_down.weight"].tensor_type.name == kind
    assert tensors["output_norm.weight"].tensor_type.name == "F32"


def test_llama_cpp_reads_it() -> None:
    pytest.importorskip("llama_cpp")
    call, _ = llama_cpp_call(SMALL, Call(1, 8), "Q8_0")
    call()


def test_several_texts_are_not_for_llama_cpp() -> None:
    pytest.importorskip("llama_cpp")
    with pytest.raises(Unavailable, match="one text at a time"):
        llama_cpp_call(SMALL, Call(1, 8, 4), "Q8_0")
