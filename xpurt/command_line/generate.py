"""`python -m xpurt generate`: text of a language model, and how fast it came."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import xpurt
from xpurt.command_line.arguments import positive
from xpurt.kernels import OpReport
from xpurt.startup.extras import needs
from xpurt.text.table import table

TYPES = ("bfloat16", "float16", "float32")
_BAR = 30  # characters


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "model",
        metavar="MODEL",
        help="a .gguf file, or a folder or name that transformers loads",
    )
    command.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="may be repeated; by default each line of the input is one",
    )
    command.add_argument("--mapping", help="as in XPURT_MAPPING: AUTO, CPU, GPU")
    command.add_argument(
        "--tokens", type=positive, default=128, help="at most; default: 128"
    )
    command.add_argument(
        "--dtype",
        choices=TYPES,
        default="bfloat16",
        help="of activations, and of weights in floating point; default: bfloat16",
    )
    command.add_argument(
        "--temperature",
        type=_temperature,
        default=0.0,
        help="of random choices; default: 0, the most likely token",
    )
    command.add_argument(
        "--raw",
        action="store_true",
        help="continue the text, also where the model has a form for conversations",
    )


def _temperature(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 on")
    return number


def run_generate(options: argparse.Namespace) -> int:
    """Raises what loading raises: OSError, ValueError, MissingExtra, XpurtError."""
    transformers = needs("transformers", "generate", extra="language")
    if options.mapping is not None:
        xpurt.set_xpu_mapping(options.mapping)
    model, tokenizer = load(transformers, options.model, getattr(torch, options.dtype))
    xpurt.op_report(reset=True)
    for prompt in _prompts(options):
        tokens = _tokens(tokenizer, prompt, options.raw)
        watch = Stopwatch(
            transformers.TextStreamer(
                tokenizer, skip_prompt=True, skip_special_tokens=True
            )
        )
        sampled = options.temperature > 0
        model.generate(
            **tokens.to(model.device),
            max_new_tokens=options.tokens,
            do_sample=sampled,
            temperature=options.temperature if sampled else None,
            streamer=watch,
        )
        print(f"\n{watch}\n", file=sys.stderr)
    print(where(xpurt.op_report()), file=sys.stderr)
    return 0


def _prompts(options: argparse.Namespace) -> Iterator[str]:
    if options.prompt is not None:
        yield from options.prompt
    else:
        yield from (line.strip() for line in sys.stdin if line.strip())


def load(transformers: Any, name: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """The model on xpu, and its tokenizer."""
    path = Path(name).expanduser()
    if path.suffix == ".gguf" or path.is_file():
        bar = _bar if sys.stderr.isatty() else None
        model = xpurt.load_gguf(path, dtype, "xpu", progress=bar)
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            path.absolute().parent, gguf_file=path.name
        )
        return model, tokenizer
    folder = path if path.is_dir() else name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    return model.to("xpu"), transformers.AutoTokenizer.from_pretrained(folder)


def _bar(done: int, of: int) -> None:
    filled = _BAR * done // of
    bar = "#" * filled + "." * (_BAR - filled)
    end = "\n" if done == of else ""
    print(f"\rloading {bar} {done}/{of}", end=end, file=sys.stderr, flush=True)


def _tokens(tokenizer: Any, prompt: str, raw: bool) -> Any:
    """The prompt as a user's turn of a conversation if the tokenizer has such a form."""
    if raw or not tokenizer.chat_template:
        return tokenizer(prompt, return_tensors="pt")
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )


class Stopwatch:
    """A streamer for `generate` that passes tokens on, and notes when they come."""

    def __init__(self, streamer: Any) -> None:
        self._streamer = streamer
        self._begin = time.perf_counter()
        self._prompt = 0  # tokens
        self._times: list[float] = []  # of each token, in seconds after the begin

    def put(self, tokens: torch.Tensor) -> None:
        """Called with the prompt, and then with one token at a time."""
        if self._prompt:
            self._times.append(time.perf_counter() - self._begin)
        else:
            self._prompt = tokens.numel()
        self._streamer.put(tokens)

    def end(self) -> None:
        self._streamer.end()

    def __str__(self) -> str:
        if not self._times:
            return f"prompt {self._prompt} tokens"
        first, decoded = self._times[0], len(self._times) - 1
        line = f"prompt {self._prompt} tokens, {self._prompt / first:.1f} tokens/s"
        if decoded:
            rate = decoded / (self._times[-1] - first)
            line += f"; decode {decoded} tokens, {rate:.1f} tokens/s"
        return line


def where(report: OpReport) -> str:
    """A table of the devices and tiers that ran the ops, with their share of the time.
    Linear layers, most of a language model, have rows of their own."""
    places: dict[tuple[str, str, str], list[float]] = {}
    for row in report:
        linear = "linear" in row.op or row.op.startswith(("aten::mm", "aten::addmm"))
        key = (row.device, "linear layers" if linear else "other ops", row.tier)
        found = places.setdefault(key, [0, 0.0])
        found[0] += row.calls
        found[1] += row.time_ms
    whole = sum(ms for _, ms in places.values()) or 1.0
    rows = sorted(places.items(), key=lambda each: -each[1][1])
    return table(
        ("device", ">ops", "tier", ">calls", ">time"),
        [(*key, f"{calls:,.0f}", f"{ms / whole:.0%}") for key, (calls, ms) in rows],
    )
