"""Sizes that no file has, written into whole files of every kind that ctxexp reads."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ctxexp.results.files import REPLICATES, RESULTS_FILE

from . import weights

Change = Callable[[Path, np.random.Generator], str]  # spoils one file of a folder, and says how
HUGE = (10**9, 2**31 - 1, 2**32 - 1, 2**40, 2**60, 2**63 - 1, 2**64 - 1)


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def packed(path: Path, at: int, format: str, value: int) -> None:
    """Write a number over the file's bytes, as much of it as fits."""
    data = bytearray(path.read_bytes())
    struct.pack_into(format, data, at, value & (1 << 8 * struct.calcsize(format)) - 1)
    path.write_bytes(data)


def gguf_counts(folder: Path, rng: np.random.Generator) -> str:
    """The header's counts of tensors or keys: absurd, or off by a few."""
    path, at = folder / "model.gguf", int(pick(rng, (8, 16)))
    held = struct.unpack_from("<Q", path.read_bytes(), at)[0]
    value = int(pick(rng, (*HUGE, held + 1, held - 1, held + 1000)))
    packed(path, at, "<Q", value)
    return f"{value} at {at}"


def gguf_values(folder: Path, rng: np.random.Generator) -> str:
    """A key's number or a list's length."""
    path = folder / "model.gguf"
    keys = {
        "llama.block_count": "<I", "llama.embedding_length": "<I", "llama.feed_forward_length": "<I",
        "llama.attention.head_count": "<I", "llama.attention.head_count_kv": "<I", "llama.vocab_size": "<I",
        "llama.rope.dimension_count": "<I", "tokenizer.ggml.tokens": "<Q", "tokenizer.ggml.merges": "<Q",
        "tokenizer.ggml.token_type": "<Q", "general.name": "<Q",
    }  # fmt: skip
    key = pick(rng, list(keys))
    data, value = path.read_bytes(), int(pick(rng, HUGE))
    at = data.index(key.encode() + struct.pack("<I", {"<I": 4, "<Q": 9}[keys[key]] if key != "general.name" else 8))
    at += len(key) + (
        8 if key in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type") else 4
    )
    packed(path, at, keys[key], value)
    return f"{key}={value}"


def gguf_tensors(folder: Path, rng: np.random.Generator) -> str:
    """A tensor's number of dimensions, one of them, its type, or where it lies."""
    path = folder / "model.gguf"
    name = pick(rng, ("token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"))
    at = path.read_bytes().index(name.encode()) + len(name)
    field, offset, format = pick(rng, (("dimensions", 0, "<I"), ("rows", 12, "<Q"), ("width", 4, "<Q"),
                                       ("type", 20, "<I"), ("place", 24, "<Q")))  # fmt: skip
    value = int(pick(rng, HUGE))
    packed(path, at + offset, format, value)
    return f"{name}: {field} {value}"


def safetensors_head(folder: Path, rng: np.random.Generator) -> str:
    """The length of a safetensors header, or the shape and place of a tensor in it."""
    path = next(folder.glob("*.safetensors"))
    data = path.read_bytes()
    n = struct.unpack_from("<Q", data)[0]
    if rng.random() < 0.4:
        value = int(pick(rng, (*HUGE, n + 1, len(data), 99_999_999)))
        packed(path, 0, "<Q", value)
        return f"a header of {value} bytes"
    head = json.loads(data[8 : 8 + n])
    name = pick(rng, sorted(head.keys() - {"__metadata__"}))
    value, rows = int(pick(rng, HUGE)), head[name]["shape"]
    pick(rng, (
        lambda: rows.__setitem__(0, value),
        lambda: rows.append(value),
        lambda: rows.extend([1] * 100_000),
        lambda: head[name].update(data_offsets=[0, value]),
        lambda: head[name].update(shape=[value, value], data_offsets=[0, value * value * 4]),
        lambda: rows.__setitem__(0, -1),
    ))()  # fmt: skip
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + n :])
    return f"{name}: {str(head[name])[:80]}"


def config_sizes(folder: Path, rng: np.random.Generator) -> str:
    """A size of config.json; window sizes change no weight and are no memory."""
    key, value = pick(rng, weights.SIZES["bert"][:5]), int(pick(rng, (*HUGE, 10**5, 10**30)))
    weights.edited(folder / "config.json", lambda held: held.update({key: value}))
    return f"{key}={value}"


def index_sizes(folder: Path, rng: np.random.Generator) -> str:
    """An index of parts that names very many, or of a very large total."""
    part = "model-00001-of-00001.safetensors"
    (folder / "model.safetensors").rename(folder / part)
    many = bool(rng.random() < 0.5)
    names = {f"w{i}": f"model-{i:05d}.safetensors" if many else part for i in range(int(pick(rng, (10_000, 50_000))))}
    index = {"metadata": {"total_size": int(pick(rng, HUGE))}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return f"{len(names)} weights in an index"


def elmo_options(folder: Path, rng: np.random.Generator) -> str:
    section, key = pick(rng, (("lstm", "dim"), ("lstm", "projection_dim"), ("lstm", "n_layers"),
                              ("char_cnn", "n_highway"), ("char_cnn", "max_characters_per_token"),
                              ("char_cnn", "embedding"), ("char_cnn", "filters")))  # fmt: skip
    value = int(pick(rng, (*HUGE, 99, 10**5)))
    odd: Any = {"embedding": {"dim": value}, "filters": [[1, value]] * int(pick(rng, (1, 99)))}.get(key, value)
    weights.edited(folder / "options.json", lambda held: held[section].update({key: odd}))
    return f"{section}.{key}={str(odd)[:60]}"


def elmo_datasets(folder: Path, rng: np.random.Generator) -> str:
    """Datasets of the declared shapes and of no content, or of another file's, with options that ask for them."""
    from ctxexp.models.elmo.files import layout, read_options

    before = layout(read_options(folder / "options.json"))
    sizes = {"dim": int(pick(rng, (10_000, 20_000))), "projection_dim": int(pick(rng, (3000, 5000)))}  # 5 to 14 GB
    weights.edited(folder / "options.json", lambda held: held["lstm"].update(sizes))
    how = pick(rng, ("nothing", "chunks", "compressed chunks", "another file", "a link"))
    choices: dict[str, Any] = {"chunks": {"chunks": True}, "compressed chunks": {"compression": "gzip"}}.get(how, {})
    with h5py.File(folder / "weights.hdf5", "a") as file:
        for name, shape in layout(read_options(folder / "options.json")).items():
            if shape == before.get(name):
                continue
            if name in file:
                del file[name]
            if how == "a link":
                file[name] = h5py.ExternalLink("/dev/zero", "/x")
            elif how == "another file":
                file.create_dataset(name, shape, "<f4", external=[("/dev/zero", 0, int(np.prod(shape)) * 4)])
            else:
                file.create_dataset(name, shape, "<f4", **choices)
    return f"{sizes}, {how}"


def vector_headers(folder: Path, rng: np.random.Generator) -> str:
    """The header of word2vec's formats: absurd counts or widths, off by one, or numbers of thousands of digits."""
    path = folder / pick(rng, ("v.txt", "v.bin"))
    head, _, rest = path.read_bytes().partition(b"\n")
    n, dim = head.split()
    large = str(int(pick(rng, (*HUGE, 10**18, int(n) + 1, int(n) - 1)))).encode()
    digits = b"9" * int(pick(rng, (30, 400, 4301, 100_000)))
    new = pick(rng, ((large, dim), (n, large), (large, large), (digits, dim), (n, digits)))
    path.write_bytes(b" ".join(new) + b"\n" + rest)
    return f"{path.name} begins with {b' '.join(new)[:60]!r}"


def vector_lines(folder: Path, rng: np.random.Generator) -> str:
    """A line of very many bytes, packed or a hole in the file."""
    path, size = folder / "v.txt", int(pick(rng, (1 << 30, 3 << 30)))
    first = path.read_bytes().splitlines(keepends=True)[1]
    fill = pick(rng, (b"\0", b"1", b" "))
    (folder / "v.safetensors").unlink()
    path.unlink()
    if fill == b"\0":
        path.write_bytes(first)
        os.truncate(path, size >> 3)  # its digest is taken
        return f"{size >> 3} null bytes in a hole"
    data = gzip.compress(first) + gzip.compress(fill * (1 << 24)) * (size >> 24)
    (folder / "v.txt.gz").write_bytes(data)
    return f"{size} bytes {fill!r} in one line, packed"


def archive_arrays(folder: Path, rng: np.random.Generator) -> str:
    """An array of replicates.npz whose header names an absurd shape, type or length."""
    path = folder / REPLICATES
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    name, size = pick(rng, sorted(parts)), int(pick(rng, HUGE))
    descr, shape = pick(rng, (("<f8", (size,)), ("<f4", (3, size)), ("<f4", (size, size)), (f"<U{10**9}", (40,)),
                              (f"|V{2**31 - 1}", (size,)), ("<f4", (-1, -24)), ("<f4", (1,) * 40), ("|O", (3, 8)),
                              ("<f4", (3, 10**4000))))  # fmt: skip
    out = io.BytesIO()
    try:
        np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
        head = out.getvalue()
    except ValueError:  # digits that don't fit
        head = b"\x93NUMPY\x02\x00" + struct.pack("<I", size & 0xFFFFFFFF)
    if rng.random() < 0.2:
        head = b"\x93NUMPY\x02\x00" + struct.pack("<I", size & 0xFFFFFFFF) + head[10:]
    content = parts[name][128:] if rng.random() < 0.5 else bytes(pick(rng, (0, 96, 1 << 24)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for other, data in parts.items():
            file.writestr(other, head + content if other == name else data)
    return f"{name}: {descr} {str(shape)[:60]}"


def result_layers(folder: Path, rng: np.random.Generator) -> str:
    """Numbers of layers in results.json that its curves don't have."""
    document = json.loads((folder / RESULTS_FILE).read_text())
    model, value = document["info"]["model"], int(pick(rng, (*HUGE[:4], 10**30, -1, 4, 2)))
    pick(rng, (
        lambda: model.update(n_layers=value),
        lambda: model.update(n_layers=value, layers=[0, 1, 2]),
        lambda: model.update(n_layers=value, layers=[value - 1]),
        lambda: model.update(layers=[0, 1, value]),
        lambda: model.update(layers=[-1, 1, 2]),
        lambda: model.update(n_layers=value, layers=list(range(100_000))),
    ))()  # fmt: skip
    (folder / RESULTS_FILE).write_text(json.dumps(document))
    return f"n_layers={model['n_layers']} layers={str(model['layers'])[:40]}"


def result_numbers(folder: Path, rng: np.random.Generator) -> str:
    """Other numbers of results.json, types of a table's columns, a number of thousands of digits, a deep list."""
    document, size = json.loads((folder / RESULTS_FILE).read_text()), int(pick(rng, (*HUGE, 10**30)))
    info, table = document["info"], document["tables"]["words"]
    odd = pick(rng, ("<U1000000000", "S2147483647", f"V{size}", "object", "float64,float64", f"{size}f4", "M8[ns]"))
    changes: dict[str, Callable[[], object]] = {
        f"a column of {odd}": lambda: table.update(raw=odd),
        f"bootstrap={size}": lambda: info.update(bootstrap=size),
        f"pairs={size}": lambda: info["corpus"].update(pairs=size, one_pass=size),
        f"seeds={size}": lambda: info.update(seeds=[size] * 3, seed=size),
        f"chance of {size}": lambda: info["baseline"].update(name="b", size=size),
        "very many tables": lambda: document["tables"].update({f"t{i}": table for i in range(20_000)}),
    }
    name = pick(rng, sorted(changes))
    changes[name]()
    text = json.dumps(document)
    if rng.random() < 0.2:
        name, text = "100,000 digits", text.replace('"bootstrap": 0', f'"bootstrap": {"9" * 100_000}')
    (folder / RESULTS_FILE).write_text(text)
    return name


def text_lines(folder: Path, rng: np.random.Generator) -> str:
    """A line of very many bytes, packed or a hole in the file."""
    size, fill = int(pick(rng, (1 << 30, 3 << 30))), pick(rng, (b"\0", b"a", b" ", b"a b "))
    if fill == b"\0":
        (folder / "text" / "c.txt").write_text("the river\n")
        os.truncate(folder / "text" / "c.txt", size)
        return f"{size} null bytes in a hole"
    data = gzip.compress(fill * ((1 << 24) // len(fill))) * (size >> 24)
    (folder / "text" / "c.txt.gz").write_bytes(data)
    return f"{size} bytes {fill!r} in one line, packed"
