"""The Trainer and the pipelines of transformers, on models from configurations."""

from pathlib import Path
from typing import Any

import pytest
import torch
from kernels.model_zoo import ENCODER

from programs.small_tokenizer import tokenizer
from programs.test_transformers import TOKENS, llama

accelerate = pytest.importorskip("accelerate")
transformers = pytest.importorskip("transformers")

STEPS = 3


def trainer(folder: Path, **options: Any) -> Any:
    torch.manual_seed(0)
    model, _ = llama()
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        max_steps=STEPS,
        logging_steps=1,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **options,
    )
    rows = [{"input_ids": each, "labels": each} for each in TOKENS.repeat(4, 1)]
    return transformers.Trainer(model, arguments, train_dataset=rows)


def losses(trained: Any) -> list[float]:
    trained.train()
    return [each["loss"] for each in trained.state.log_history if "loss" in each]


def test_a_trainer_takes_xpu_and_its_losses_are_the_cpu_s(
    xpu: torch.device, tmp_path: Path
) -> None:
    made = trainer(tmp_path)
    assert made.args.device == xpu
    found = losses(made)
    assert next(made.model.parameters()).device == xpu
    del made
    accelerate.state.AcceleratorState._reset_state(True)
    expected = losses(trainer(tmp_path, use_cpu=True))
    assert len(found) == STEPS
    assert expected[0] != expected[-1]
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)  # as logged


def test_a_trainer_in_bfloat16_saves_and_resumes(
    xpu: torch.device, tmp_path: Path
) -> None:
    made = trainer(tmp_path, bf16=True, gradient_checkpointing=True)
    found = losses(made)
    assert found[-1] < found[0]
    made.save_model(str(tmp_path / "saved"))
    made.save_state()
    again = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "saved")
    for one, other in zip(again.parameters(), made.model.parameters(), strict=True):
        assert torch.equal(one, other.cpu())


def test_evaluation(xpu: torch.device, tmp_path: Path) -> None:
    made = trainer(tmp_path)
    rows = made.train_dataset
    found = made.evaluate(rows)["eval_loss"]
    model, _ = llama()
    model.load_state_dict(made.model.state_dict())
    with torch.no_grad():
        expected = float(model.eval()(TOKENS, labels=TOKENS).loss)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("device", ["xpu", 0, None])
def test_a_pipeline_of_text(device: Any, xpu: torch.device) -> None:
    """By its name, by its index, and where none is named."""
    torch.manual_seed(0)
    words = tokenizer()
    config = transformers.BertConfig(vocab_size=len(words), num_labels=3, **ENCODER)
    model = transformers.BertForSequenceClassification(config).eval()
    text = ["the cat sat", "a dog ran to the tree"]

    def answers(device: Any) -> list[list[dict[str, Any]]]:
        made = transformers.pipeline(
            "text-classification", model, tokenizer=words, device=device, top_k=None
        )
        if device != "cpu":
            assert made.device.type == "xpu"
            assert next(made.model.parameters()).device == xpu
        found: list[list[dict[str, Any]]] = made(text, batch_size=2)
        return found

    for one, other in zip(answers("cpu"), answers(device), strict=True):
        assert [each["label"] for each in other] == [each["label"] for each in one]
        torch.testing.assert_close(
            [each["score"] for each in other],
            [each["score"] for each in one],
            rtol=1e-4,
            atol=1e-5,
        )


def test_a_pipeline_writes_text(xpu: torch.device) -> None:
    torch.manual_seed(0)
    words = tokenizer()
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=len(words), n_embd=32, n_layer=2, n_head=4, n_positions=64
        )
    )
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    found = [
        transformers.pipeline("text-generation", model, tokenizer=words, device=device)(
            "the cat", **options
        )
        for device in ("cpu", "xpu")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False, "num_beams": 3},
        {"do_sample": False, "cache_implementation": "static", "disable_compile": True},
        {"do_sample": True, "top_k": 1},
    ],
    ids=["beams", "static cache", "sampling"],
)
def test_ways_of_generation(options: dict[str, Any], xpu: torch.device) -> None:
    torch.manual_seed(0)
    model, _ = llama()
    model.eval()
    options = {"max_new_tokens": 6, "pad_token_id": 0, **options}
    expected = model.generate(TOKENS, **options)
    found = model.to(xpu).generate(TOKENS.to(xpu), **options)
    assert torch.equal(found.cpu(), expected)
