"""A sentence-transformer made from a small configuration, encoding and training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from kernels.model_zoo import ENCODER

from programs.small_tokenizer import tokenizer

sentence_transformers = pytest.importorskip("sentence_transformers")
transformers = pytest.importorskip("transformers")

TEXTS = ["the cat sat on the mat", "a dog ran", "to the tree ran a cat"]


def modules(folder: Path) -> list[Any]:
    torch.manual_seed(0)
    words = tokenizer()
    words.save_pretrained(folder)
    config = transformers.BertConfig(vocab_size=len(words), **ENCODER)
    transformers.BertModel(config).save_pretrained(folder)
    parts = sentence_transformers.sentence_transformer.modules
    return [parts.Transformer(str(folder)), parts.Pooling(config.hidden_size)]


@pytest.mark.parametrize("device", ["xpu", None])
def test_sentences_are_encoded(
    device: str | None, xpu: torch.device, tmp_path: Path
) -> None:
    expected = sentence_transformers.SentenceTransformer(
        modules=modules(tmp_path), device="cpu"
    ).encode(TEXTS, convert_to_tensor=True)
    model = sentence_transformers.SentenceTransformer(
        modules=modules(tmp_path), device=device
    )
    assert model.device.type == "xpu"
    found = model.encode(TEXTS, convert_to_tensor=True)
    assert found.device == xpu
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        torch.as_tensor(model.encode(TEXTS, batch_size=1)),
        expected,
        rtol=1e-4,
        atol=1e-5,
    )
    near = model.similarity(found, found)
    assert near.diagonal().allclose(torch.ones((), device=xpu), atol=1e-5)
    hits = sentence_transformers.util.semantic_search(found, found, top_k=1)
    assert [each[0]["corpus_id"] for each in hits] == [0, 1, 2]


def test_a_loss_and_its_gradients(xpu: torch.device, tmp_path: Path) -> None:
    found = {}
    for device in ("cpu", "xpu"):
        model = sentence_transformers.SentenceTransformer(
            modules=modules(tmp_path), device=device
        ).eval()
        losses = sentence_transformers.sentence_transformer.losses
        loss = losses.MultipleNegativesRankingLoss(model)
        pairs = [model.preprocess(TEXTS), model.preprocess(TEXTS[::-1])]
        given = [
            {
                k: x.to(device) if isinstance(x, torch.Tensor) else x
                for k, x in p.items()
            }
            for p in pairs
        ]
        value = loss(given, torch.zeros(3, device=device))
        value.backward()
        weight = model[0].auto_model.encoder.layer[0].intermediate.dense.weight
        found[device] = [value.detach().cpu(), weight.grad.cpu()]
    torch.testing.assert_close(found["xpu"], found["cpu"], rtol=1e-3, atol=1e-5)
