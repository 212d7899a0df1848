"""From the tensors of a file to the layers of a model."""

from typing import Any

import torch
from torch import Tensor, nn

from xpurt.language.architectures import Architecture, as_in_model
from xpurt.language.file import FileTensor, GGUFFile
from xpurt.language.layers import BlockEmbedding, BlockLinear, TiedLinear
from xpurt.startup.extras import needs

_ROTARY_FACTORS = "rope_freqs.weight"


class Weights:
    """The tensors of a file, for a model on the device meta.

    dtype: of the parameters in floating point.
    """

    def __init__(
        self, file: GGUFFile, architecture: Architecture, model: Any, dtype: torch.dtype
    ) -> None:
        self._file, self._architecture = file, architecture
        self._model, self._dtype = model, dtype
        gguf = needs("gguf", "load_gguf()", extra="language")
        numbers = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
        self._names = gguf.get_tensor_name_map(
            numbers[file.architecture], model.config.num_hidden_layers
        )
        self._left = set(file.tensors)
        self._head = model.get_output_embeddings()

    def fill(self, name: str, module: nn.Module) -> None:
        """Gives the module its tensors; one with a matrix in blocks is replaced.

        Raises ValueError if the file lacks a tensor, or has one of another shape.
        """
        if module is self._head and self._file_name(name, "weight") not in self._left:
            self._tie(name, module)
            return
        if isinstance(module, nn.Linear | nn.Embedding):
            found = self._find(name, "weight", module.weight)
            if found.block_type is not None:
                self._model.set_submodule(name, self._in_blocks(name, module, found))
                return
        for leaf, parameter in list(module._parameters.items()):
            if parameter is not None:
                found = self._find(name, leaf, parameter)
                if found.block_type is not None:
                    raise ValueError(
                        f"the tensor {found.name} of {self._file.path} is "
                        f"{found.block_type.name}, and {name} is a "
                        f"{type(module).__name__}: only linear layers and embeddings "
                        "can be in blocks."
                    )
                value = self._data(found).to(self._dtype)
                module._parameters[leaf] = nn.Parameter(value, requires_grad=False)

    def rotary_factors(self) -> Tensor | None:
        """The divisors of the rotary frequencies, if the file has some."""
        self._left.discard(_ROTARY_FACTORS)
        found = self._file.tensors.get(_ROTARY_FACTORS)
        return None if found is None else found.data

    def check_all_used(self) -> None:
        """Raises ValueError if a tensor of the file has no place in the model."""
        if self._left:
            names = ", ".join(sorted(self._left))
            raise ValueError(
                f"{type(self._model).__name__} has no place for the tensors {names} of "
                f"{self._file.path}: without them it would compute something else. Load "
                "it in floating point, by from_pretrained(folder, gguf_file=name) of "
                "transformers, and compare."
            )

    def _file_name(self, name: str, leaf: str) -> str:
        found = self._names.get_name(name)
        return f"{found}.{leaf}" if found else ""

    def _find(self, name: str, leaf: str, parameter: Tensor) -> FileTensor:
        file_name = self._file_name(name, leaf)
        found = self._file.tensors.get(file_name)
        if found is None:
            raise ValueError(
                f"{self._file.path} lacks the tensor {file_name or '?'} of {name}.{leaf}. "
                "Convert the model anew by llama.cpp's convert_hf_to_gguf.py."
            )
        if found.shape != tuple(parameter.shape):
            raise ValueError(
                f"the tensor {file_name} of {self._file.path} has the shape "
                f"{found.shape}; {name}.{leaf} wants {tuple(parameter.shape)}. The file's "
                "metadata does not fit its tensors."
            )
        self._left.discard(file_name)
        return found

    def _data(self, found: FileTensor) -> Tensor:
        return as_in_model(found, self._architecture, self._model.config)

    def _in_blocks(
        self, name: str, module: nn.Linear | nn.Embedding, found: FileTensor
    ) -> nn.Module:
        assert found.block_type is not None
        blocks = self._data(found)
        if isinstance(module, nn.Embedding):
            scale = float(getattr(module, "scalar_embed_scale", 1.0))
            return BlockEmbedding(blocks, found.block_type, self._dtype, scale)
        bias = None
        if module.bias is not None:
            bias = self._data(self._find(name, "bias", module.bias)).float()
        return BlockLinear(blocks, found.block_type, bias)

    def _tie(self, name: str, head: nn.Module) -> None:
        """The head has the embedding's weight, which is filled before it."""
        embedding = self._model.get_input_embeddings()
        if isinstance(embedding, BlockEmbedding):
            self._model.set_submodule(name, TiedLinear(embedding))
            # transformers would tie parameters by name, which are not there.
            self._model._tied_weights_keys = None
        else:
            head.weight = embedding.weight
