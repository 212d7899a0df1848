"""Models of Hugging Face transformers, made from small configurations."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from kernels.model_zoo import ENCODER

from programs.training_steps import Batch, Loss, check

transformers = pytest.importorskip("transformers")

TOKENS = torch.randint(5, 100, (2, 12), generator=torch.Generator().manual_seed(0))
IMAGES = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SOUND = torch.rand(2, 16, 100, generator=torch.Generator().manual_seed(0))


def bert() -> tuple[Any, dict[str, torch.Tensor]]:
    config = transformers.BertConfig(vocab_size=100, **ENCODER)
    mask = torch.ones_like(TOKENS)
    mask[1, 8:] = 0
    batch = {"input_ids": TOKENS, "attention_mask": mask, "labels": TOKENS}
    return transformers.BertForMaskedLM(config), batch


def llama() -> tuple[Any, dict[str, torch.Tensor]]:
    config = transformers.LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return transformers.LlamaForCausalLM(config), {
        "input_ids": TOKENS,
        "labels": TOKENS,
    }


def vit() -> tuple[Any, dict[str, torch.Tensor]]:
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, num_labels=5, **ENCODER
    )
    batch = {"pixel_values": IMAGES, "labels": torch.tensor([1, 4])}
    return transformers.ViTForImageClassification(config), batch


def whisper() -> tuple[Any, dict[str, torch.Tensor]]:
    config = transformers.WhisperConfig(
        vocab_size=100,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=50,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        dropout=0.0,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    batch = {"input_features": SOUND, "labels": TOKENS}
    return transformers.WhisperForConditionalGeneration(config), batch


def t5() -> tuple[Any, dict[str, torch.Tensor]]:
    config = transformers.T5Config(
        vocab_size=100,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    batch = {"input_ids": TOKENS, "labels": TOKENS}
    return transformers.T5ForConditionalGeneration(config), batch


def mamba() -> tuple[Any, dict[str, torch.Tensor]]:
    config = transformers.MambaConfig(
        vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2
    )
    return transformers.MambaForCausalLM(config), {
        "input_ids": TOKENS,
        "labels": TOKENS,
    }


def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    found: torch.Tensor = model(**batch).loss
    return found


def _with_loss(
    make: Callable[[], tuple[Any, dict[str, torch.Tensor]]],
) -> Callable[[], tuple[Any, Batch, Loss]]:
    return lambda: (*make(), loss)


MADE = {
    make.__name__: _with_loss(make) for make in (bert, llama, vit, whisper, t5, mamba)
}


@pytest.mark.parametrize("name", MADE)
def test_training(name: str, xpu: torch.device) -> None:
    torch.manual_seed(0)
    check(*MADE[name](), xpu)


def test_generation(xpu: torch.device) -> None:
    torch.manual_seed(0)
    model, _ = llama()
    model.eval()
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(TOKENS, **options)
    found = model.to(xpu).generate(TOKENS.to(xpu), **options)
    assert found.device == xpu
    assert torch.equal(found.cpu(), expected)
