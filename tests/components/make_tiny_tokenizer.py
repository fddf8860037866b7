#!/usr/bin/env python3
"""Writes a model folder without weights: a small byte-level tokenizer with a chat template, and
the configuration files that servers and benchmark clients look for beside it.

Usage: make_tiny_tokenizer.py FOLDER    (needs the package `tokenizers`)

The vocabulary has about 4000 entries, since an engine that invents token ids takes them from a
range of a few thousand, and ids beyond the vocabulary would decode to nothing.
"""

import glob
import json
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4000
SPECIAL = ["<unk>", "<s>", "</s>"]
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def lines():
    """Text that is on every machine with Python: its own library."""
    for path in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:120]:
        with open(path, errors="ignore") as file:
            yield from file
    yield from ["the cat sat on a mat and ran"] * 50


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(lines(), trainer)
    return made


def main(folder):
    os.makedirs(folder, exist_ok=True)
    made = tokenizer()
    made.save(os.path.join(folder, "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    ids = {"bos_token_id": 1, "eos_token_id": 2}
    files = {
        "tokenizer_config.json": special
        | {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": 8192,
            "chat_template": TEMPLATE,
        },
        "config.json": ids
        | {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "head_dim": 16,
            "vocab_size": made.get_vocab_size(),
            "max_position_embeddings": 8192,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "torch_dtype": "float32",
            "tie_word_embeddings": False,
        },
        "generation_config.json": ids,
    }
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(content, file)


main(sys.argv[1])
