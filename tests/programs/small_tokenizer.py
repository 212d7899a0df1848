"""A tokenizer of a few words, made on the spot: nothing is downloaded."""

from typing import Any

import pytest

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog tree sat ran to on mat".split()


def tokenizer() -> Any:
    """Words are separated by spaces; others are [UNK]."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(
            {word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"
        )
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=32,
    )
