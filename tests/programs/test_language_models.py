"""Models of GGUF files beside models of transformers with the same values."""

import copy
import gc
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import xpurt
from programs.gguf_models import ROTARY_BASE, VOCABULARY, Made, config_of, made
from programs.small_tokenizer import tokenizer
from xpurt.command_line import cli
from xpurt.language.architectures import ARCHITECTURES
from xpurt.language.block_types import BLOCK_TYPES
from xpurt.language.layers import BlockEmbedding, BlockLinear, TiedLinear

transformers = pytest.importorskip("transformers")

TOKENS = torch.randint(
    3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(0)
)
BLOCKS = [each.name for each in BLOCK_TYPES.values()]


def logits(model: Any, tokens: Tensor = TOKENS) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(tokens.to(model.device)).logits
    return found.cpu()


def check_logits(model: Any, reference: Any, dtype: torch.dtype) -> None:
    """The error against the model in float64 is at most twice that of the reference with
    its weights in float32 and its activations in `dtype`, and four units in the last
    place of the largest logit."""
    exact = logits(copy.deepcopy(reference).double())
    plain = logits(copy.deepcopy(reference).to(dtype)).double()
    found = logits(model)
    assert found.dtype == dtype
    unit = torch.finfo(dtype).eps * exact.abs().max()
    bound = 2 * (plain - exact).abs().max() + 4 * unit
    assert (found.double() - exact).abs().max() <= bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("block_type", [*BLOCKS, "F32", "F16", "BF16"])
def test_each_type(
    block_type: str, dtype: torch.dtype, xpu: torch.device, tmp_path: Path
) -> None:
    small = made(tmp_path, block_type)
    model = xpurt.load_gguf(small.path, dtype)
    assert not any(tensor.is_meta for tensor in model.state_dict().values())
    head = type(model.lm_head)
    assert head is (BlockLinear if block_type in BLOCKS else torch.nn.Linear)
    check_logits(model, small.reference, dtype)
    check_logits(model.to(xpu), small.reference, dtype)


@pytest.mark.parametrize(
    ("architecture", "tied"),
    [(name, True) for name in ARCHITECTURES]
    # Files of Gemma 2 have no place for another head.
    + [(name, False) for name in ARCHITECTURES if name != "gemma2"],
)
def test_each_architecture(architecture: str, tied: bool, tmp_path: Path) -> None:
    small = made(tmp_path, "Q8_0", architecture, tied=tied)
    model = xpurt.load_gguf(small.path, torch.float32)
    assert type(model) is type(small.reference)
    whole = transformers.AutoConfig.from_pretrained(
        tmp_path, gguf_file=small.path.name, dtype=torch.float32
    )
    if architecture == "starcoder2":  # transformers leaves it at its default
        whole.rope_parameters["rope_theta"] = ROTARY_BASE
    assert model.config.to_dict() == whole.to_dict()
    assert isinstance(model.lm_head, TiedLinear if tied else BlockLinear)
    check_logits(model, small.reference, torch.float32)


def test_factors_of_rotary_frequencies(tmp_path: Path) -> None:
    small = made(tmp_path, factors=torch.linspace(1, 8, 32))
    model = xpurt.load_gguf(small.path, torch.float32)
    check_logits(model, small.reference, torch.float32)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("small"), tied=True)


def test_tied_weights_in_floating_point(tmp_path: Path) -> None:
    model = xpurt.load_gguf(made(tmp_path, "F32", tied=True).path, torch.float32)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def mapped_ranges(path: Path) -> list[range]:
    """The addresses at which this process has mapped the file."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = [line.split()[0].split("-") for line in lines if line.endswith(str(path))]
    return [range(int(begin, 16), int(end, 16)) for begin, end in found]


def outside_of(path: Path, model: Any) -> set[str]:
    """The layers whose blocks are not in the mapped file."""
    ranges = mapped_ranges(path)
    return {
        name.split(".")[-2]
        for name, buffer in model.named_buffers()
        if name.endswith("blocks")
        and not any(buffer.data_ptr() in each for each in ranges)
    }


REORDERED = {"q_proj", "k_proj"}  # their rows


def test_the_file_stays_mapped(small: Made) -> None:
    model = xpurt.load_gguf(small.path)
    assert outside_of(small.path, model) == REORDERED


def test_xpu_has_the_mapped_bytes(small: Made) -> None:
    with xpurt.xpu_mapping("CPU"):
        model = xpurt.load_gguf(small.path, device="xpu")
        assert model.device == torch.device("xpu", 0)
        assert outside_of(small.path, model) == REORDERED
        check_logits(model, small.reference, torch.bfloat16)
        del model
        gc.collect()


def test_a_device_that_cannot_read_them_has_a_copy(small: Made) -> None:
    with xpurt.xpu_mapping("GPU"):
        model = xpurt.load_gguf(small.path, device="xpu")
        assert {tensor.device.type for tensor in model.state_dict().values()} == {"xpu"}
        assert outside_of(small.path, model) > REORDERED
        check_logits(model, small.reference, torch.bfloat16)
        del model
        gc.collect()


def test_text(small: Made, xpu: torch.device) -> None:
    """Greedy, by the cache; and the model may be copied, moved and tied anew."""
    model = copy.deepcopy(xpurt.load_gguf(small.path, torch.float32))
    model.tie_weights()
    options = {"max_new_tokens": 12, "do_sample": False}
    expected = small.reference.generate(TOKENS, **options)
    assert model.generate(TOKENS, **options).equal(expected)
    found = model.to(xpu).generate(TOKENS.to(xpu), **options)
    assert found.cpu().equal(expected)


def test_progress(small: Made) -> None:
    seen: list[tuple[int, int]] = []
    xpurt.load_gguf(small.path, progress=lambda *done: seen.append(done))
    whole = len(seen)
    assert seen == [(number, whole) for number in range(1, whole + 1)]


def test_the_embedding_unpacks_its_rows_only(
    small: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = xpurt.load_gguf(small.path).get_input_embeddings()
    assert isinstance(embedding, BlockEmbedding)
    table = small.reference.get_input_embeddings().weight
    found = embedding(TOKENS)
    assert found.equal(table[TOKENS].bfloat16())
    embedding.float()
    assert embedding(TOKENS).equal(table[TOKENS])
    assert embedding(TOKENS[:, :0]).shape == (2, 0, 256)


def test_a_tensor_without_a_place_is_named(tmp_path: Path) -> None:
    small = made(tmp_path, architecture="qwen2", factors=torch.ones(32))
    content = small.path.read_bytes()
    small.path.write_bytes(content.replace(b"rope_freqs.weight", b"rope_frequ.weight"))
    with pytest.raises(
        ValueError, match=r"no place for the tensors rope_frequ\.weight"
    ):
        xpurt.load_gguf(small.path)


def test_a_tensor_that_is_missing_is_named(tmp_path: Path) -> None:
    small = made(tmp_path)
    content = small.path.read_bytes()
    small.path.write_bytes(content.replace(b"blk.1.ffn_up", b"blk.1.ffn_op"))
    with pytest.raises(ValueError, match=r"lacks the tensor blk\.1\.ffn_up\.weight"):
        xpurt.load_gguf(small.path)


def test_the_command_takes_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model of transformers; each line of the input is a prompt."""
    words = tokenizer()
    words.save_pretrained(tmp_path)
    config_of("llama", tied=True).save_pretrained(tmp_path)
    made(tmp_path, "F32", tied=True).reference.save_pretrained(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("the cat\n\nthe dog sat\n"))
    with xpurt.xpu_mapping("CPU"):
        assert cli.main(["generate", str(tmp_path), "--tokens", "3"]) == 0
        gc.collect()
    err = capsys.readouterr().err
    # With the two that begin and end a text.
    assert "prompt 4 tokens" in err
    assert "prompt 5 tokens" in err
    assert "linear layers" in err
