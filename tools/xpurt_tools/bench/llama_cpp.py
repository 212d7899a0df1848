"""The language model of the bench in llama.cpp, by llama-cpp-python, if it is installed."""

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from xpurt_tools.bench.language_model import Call, Shape
from xpurt_tools.bench.row import SEED, Unavailable

Function = Callable[[], object]


def llama_cpp_call(shape: Shape, call: Call, kind: str) -> tuple[Function, Function]:
    """A model with random weights of the type `kind` of GGUF. Wants the package gguf, too.
    Raises ImportError; Unavailable for several texts."""
    llama_cpp = importlib.import_module("llama_cpp")
    if call.batch > 1:
        raise Unavailable("llama-cpp-python reads one text at a time")
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "model.gguf"
    write_model(path, shape, kind)
    model = llama_cpp.Llama(
        str(path),
        n_ctx=call.past + call.tokens,
        n_batch=max(call.tokens, 512),
        n_threads=torch.get_num_threads(),
        n_threads_batch=torch.get_num_threads(),
        verbose=False,
    )
    words = np.random.default_rng(SEED).integers(
        3, shape.words, call.past + call.tokens
    )
    text = words.tolist()
    if call.past:
        model.eval(text[: call.past])

    def run() -> object:
        model.n_tokens = call.past  # what comes after is dropped from the cache
        return model.eval(text[call.past :])

    def ends() -> object:
        return folder  # kept as long as the calls

    return run, ends


def write_model(path: Path, shape: Shape, kind: str) -> None:
    """A Llama with random weights, without a tokenizer."""
    gguf = importlib.import_module("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    head = shape.width // shape.heads
    writer.add_vocab_size(shape.words)
    writer.add_context_length(4096)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.groups)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("no_vocab")
    random = np.random.default_rng(SEED)
    number = gguf.GGMLQuantizationType[kind]

    def add(name: str, *sizes: int) -> None:
        values: Any = random.standard_normal(sizes, np.float32) * 0.02
        if len(sizes) == 1:
            writer.add_tensor(name, values + 1)
        else:
            blocks = gguf.quants.quantize(values, number)
            writer.add_tensor(name, blocks, raw_dtype=number)

    width, inner, keys = shape.width, shape.inner, shape.groups * head
    add("token_embd.weight", shape.words, width)
    add("output_norm.weight", width)
    add("output.weight", shape.words, width)
    for layer in range(shape.layers):
        at = f"blk.{layer}"
        add(f"{at}.attn_norm.weight", width)
        add(f"{at}.attn_q.weight", width, width)
        add(f"{at}.attn_k.weight", keys, width)
        add(f"{at}.attn_v.weight", keys, width)
        add(f"{at}.attn_output.weight", width, width)
        add(f"{at}.ffn_norm.weight", width)
        add(f"{at}.ffn_gate.weight", inner, width)
        add(f"{at}.ffn_up.weight", inner, width)
        add(f"{at}.ffn_down.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
