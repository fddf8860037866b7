#!/usr/bin/env python3
"""Writes a tiny llama-architecture model with random weights that a real llama-server loads and
streams from: about 0.6 MB, a vocabulary of common English words with single bytes to fall back
on. The same file every time. Standard library only. With a second name it also writes the
model's tokenizer as a `tokenizer.json`.

usage: make_tiny_gguf.py OUT.gguf [OUT.json]

The format is GGUF version 3: a header, key-value pairs, tensor descriptions, then the tensors,
each at a multiple of 32 bytes. Numbers are little-endian; a tensor's dimensions are listed
fastest-moving first.
"""

import array
import json
import random
import struct
import sys

EMBEDDING, FEED_FORWARD, LAYERS, HEADS, CONTEXT = 64, 128, 2, 4, 40960
ALIGNMENT = 32
UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

WORDS = """the cat sat on a mat and ran to of in is it you that he was for are with as his they at
be this from have or by one had not but what all were when we there can an your which their said
if do will each about how up out them then she many some so""".split()


def vocabulary():
    """Pieces with score and type. The word pieces come with all their prefixes, because the
    tokenizer builds words by merging neighbours and every step must be in the vocabulary."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    singles = "\u2581" + letters + letters.upper() + "0123456789.,!?:;'\"()-<>|/_"
    pieces += [(single, -1000.0, NORMAL) for single in singles]
    seen = {piece for piece, _, _ in pieces}
    rank = 0
    for word in WORDS:
        for length in range(1, len(word) + 1):
            piece = "\u2581" + word[:length]
            if piece not in seen:
                rank += 1
                seen.add(piece)
                pieces.append((piece, -float(rank), NORMAL))
    return pieces


def tokenizer(pieces):
    """The same vocabulary for the library `tokenizers`. Every word piece is made in one way only,
    from its own beginning and a letter, so that the order of scores is the order of merges."""
    words = sorted(
        (piece for piece in pieces if len(piece[0]) > 1 and piece[2] == NORMAL),
        key=lambda piece: -piece[1],
    )
    space = "\u2581"
    special = [
        {"id": id, "content": piece, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for id, (piece, _, kind) in enumerate(pieces)
        if kind in (UNKNOWN, CONTROL)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": space},
                {"type": "Replace", "pattern": {"String": " "}, "content": space},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": True,
            "vocab": {piece: id for id, (piece, _, _) in enumerate(pieces)},
            "merges": [[piece[:-1], piece[-1]] for piece, _, _ in words],
        },
    }


def text(value):
    raw = value.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, packed):
    return text(key) + struct.pack("<I", kind) + packed


def array_of(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def metadata(pieces):
    u32 = lambda value: struct.pack("<I", value)
    template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    return [
        pair("general.architecture", STRING, text("llama")),
        pair("general.name", STRING, text("tiny-random")),
        pair("general.file_type", UINT32, u32(0)),
        pair("llama.context_length", UINT32, u32(CONTEXT)),
        pair("llama.embedding_length", UINT32, u32(EMBEDDING)),
        pair("llama.block_count", UINT32, u32(LAYERS)),
        pair("llama.feed_forward_length", UINT32, u32(FEED_FORWARD)),
        pair("llama.attention.head_count", UINT32, u32(HEADS)),
        pair("llama.attention.head_count_kv", UINT32, u32(HEADS)),
        pair("llama.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)),
        pair("llama.rope.dimension_count", UINT32, u32(EMBEDDING // HEADS)),
        pair("llama.vocab_size", UINT32, u32(len(pieces))),
        pair("tokenizer.ggml.model", STRING, text("llama")),
        pair("tokenizer.ggml.tokens", ARRAY, array_of(STRING, [text(p) for p, _, _ in pieces])),
        pair("tokenizer.ggml.scores", ARRAY, array_of(FLOAT32, [struct.pack("<f", s) for _, s, _ in pieces])),
        pair("tokenizer.ggml.token_type", ARRAY, array_of(INT32, [struct.pack("<i", t) for _, _, t in pieces])),
        pair("tokenizer.ggml.unknown_token_id", UINT32, u32(0)),
        pair("tokenizer.ggml.bos_token_id", UINT32, u32(1)),
        pair("tokenizer.ggml.eos_token_id", UINT32, u32(2)),
        pair("tokenizer.ggml.add_bos_token", BOOL, b"\x01"),
        pair("tokenizer.ggml.add_space_prefix", BOOL, b"\x01"),
        pair("tokenizer.chat_template", STRING, text(template)),
    ]


def tensors(vocab_size):
    """Name, rows (None for a vector), columns, values."""
    source = random.Random(7)

    def noise(rows, columns, scale=0.05):
        return array.array("f", (source.gauss(0.0, scale) for _ in range(rows * columns)))

    ones = array.array("f", [1.0] * EMBEDDING)
    yield "token_embd.weight", vocab_size, EMBEDDING, noise(vocab_size, EMBEDDING)
    yield "output_norm.weight", None, EMBEDDING, ones
    # Bytes, control pieces and the end of text get logit 0, so that words win by far and an
    # answer runs to its token limit.
    output = noise(vocab_size, EMBEDDING, scale=1.0)
    special = 259 * EMBEDDING
    output[:special] = array.array("f", bytes(4 * special))
    yield "output.weight", vocab_size, EMBEDDING, output
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", None, EMBEDDING, ones
        yield block + "ffn_norm.weight", None, EMBEDDING, ones
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield block + name + ".weight", EMBEDDING, EMBEDDING, noise(EMBEDDING, EMBEDDING)
        for name, rows, columns in (
            ("ffn_gate", FEED_FORWARD, EMBEDDING),
            ("ffn_up", FEED_FORWARD, EMBEDDING),
            ("ffn_down", EMBEDDING, FEED_FORWARD),
        ):
            yield block + name + ".weight", rows, columns, noise(rows, columns)


def padding(length):
    return b"\x00" * (-length % ALIGNMENT)


def main(path, tokenizer_path=None):
    pieces = vocabulary()
    if tokenizer_path is not None:
        with open(tokenizer_path, "w", encoding="utf-8") as out:
            json.dump(tokenizer(pieces), out)
    pairs = metadata(pieces)
    head, body = b"", bytearray()
    count = 0
    for name, rows, columns, values in tensors(len(pieces)):
        shape = (columns,) if rows is None else (columns, rows)
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", extent) for extent in shape)
        head += struct.pack("<IQ", 0, len(body))
        if sys.byteorder == "big":
            values.byteswap()
        raw = values.tobytes()
        body += raw + padding(len(raw))
        count += 1
    front = b"GGUF" + struct.pack("<IQQ", 3, count, len(pairs)) + b"".join(pairs) + head
    with open(path, "wb") as out:
        out.write(front + padding(len(front)) + bytes(body))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: make_tiny_gguf.py OUT.gguf [OUT.json]")
    main(*sys.argv[1:])
