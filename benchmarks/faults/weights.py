"""Damaged checkpoints: each is refused with a message, or gives the vectors that the whole one gave."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import h5py
import numpy as np
import tiny_models

from ctxexp import Corpus, Encoder, Occurrences
from ctxexp.models.elmo.factory import elmo
from ctxexp.models.elmo.files import ElmoOptions, write_options, write_weights
from ctxexp.models.huggingface import huggingface
from ctxexp.models.vector_files import write_binary, write_safetensors, write_text
from ctxexp.models.word_vectors import word_vectors
from ctxexp.vectors.encode import open_store

from . import Silent

Damage = Callable[[Path], None]
KINDS = ("bert", "gpt2", "roberta", "llama", "t5", "elmo", "words")
WORDS = ["the", "quick", "fox", "jumps", "naïve", "dog", ",", "bank"]
TEXT = Corpus.of("tiny", [["the", "quick", "fox", "jumps"], ["naïve", "dog", ",", "the", "bank"]])
OPTIONS = ElmoOptions(4, ((1, 3), (2, 4), (3, 6)), 1, 262, 50, "relu", 12, 5, 2, 3.0, 3.0, True)


def make(kind: str, folder: Path) -> Path:
    """A whole checkpoint of that kind in `folder`."""
    if kind == "elmo":
        from ctxexp.models.elmo.network import ElmoNetwork

        folder.mkdir(parents=True)
        write_options(folder / "options.json", OPTIONS)
        write_weights(folder / "weights.hdf5", ElmoNetwork(OPTIONS).state_dict(), OPTIONS)
    elif kind == "words":
        folder.mkdir(parents=True)
        x = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
        for name, write in (("v.txt", write_text), ("v.bin", write_binary), ("v.safetensors", write_safetensors)):
            write(folder / name, WORDS, x)
    else:
        tiny_models.make(kind, folder)
    return folder


def load(kind: str, folder: Path, file: str = "v.txt") -> Encoder:
    """The encoder of a checkpoint made here."""
    if kind == "elmo":
        options, weights = (str(folder / name) for name in ("options.json", "weights.hdf5"))
        return elmo(options_file=options, weight_file=weights, device="cpu")
    if kind == "words":
        return word_vectors(path=str(folder / file))
    return huggingface(checkpoint=str(folder), device="cpu")


def vectors(encoder: Encoder, cache_folder: Path) -> tuple[list[np.ndarray], list[str]]:
    """Every layer of the text's rows, and which unit each row is."""
    store = open_store(TEXT, encoder, cache=cache_folder)
    Occurrences.of(store, TEXT, min_contexts=1)  # which refuses a text without any vector
    rows = np.concatenate([np.arange(*store.offsets[s : s + 2]) for s in store.stored_of])
    units = [store.vocabulary[code] for code in store.unit_codes[rows]]
    return [np.array(store.layer(i)[rows]) for i in range(store.n_layers)], units


@cache
def whole(kind: str) -> tuple[Path, tuple[list[np.ndarray], list[str]]]:
    """A whole checkpoint, made once, and its vectors."""
    folder = Path(mkdtemp(prefix=f"ctxexp-{kind}-"))
    return make(kind, folder / "whole"), vectors(load(kind, folder / "whole"), folder / "cache")


def tried(kind: str, damage: Damage, folder: Path, file: str) -> None:
    """Damage a copy and use it; `Silent` if that goes well but not as with the whole one."""
    source, (right, units) = whole(kind)
    copy = shutil.copytree(source, folder / "damaged")
    damage(copy)
    layers, named = vectors(load(kind, copy, file), folder / "cache")
    if kind == "words" and set(named) < set(units):  # words without a vector are told, and counted in every run
        at = [i for i, unit in enumerate(units) if unit in set(named)]
        right, units = [layer[at] for layer in right], [units[i] for i in at]
    if named != units or len(layers) != len(right):
        raise Silent(f"{len(layers)} layers of {len(named)} units, not {len(right)} of {len(units)}")
    for number, (a, b) in enumerate(zip(layers, right, strict=True)):
        if not np.allclose(a, b, atol=1e-5):
            raise Silent(f"layer {number} is off by {np.abs(a - b).max():.3g}")


# ------------------------------------------------------------------ damages of files


def cut(rng: np.random.Generator, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(rng.integers(len(data) - 1))])


def emptied(_: np.random.Generator, path: Path) -> None:
    path.write_bytes(b"")


def zeroed(_: np.random.Generator, path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def scrambled(rng: np.random.Generator, path: Path) -> None:
    path.write_bytes(rng.bytes(path.stat().st_size))


def head_flipped(rng: np.random.Generator, path: Path) -> None:
    """One bit of the first eight bytes: a size or a signature."""
    data = bytearray(path.read_bytes())
    data[int(rng.integers(8))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def removed(_: np.random.Generator, path: Path) -> None:
    path.unlink()


def a_folder(_: np.random.Generator, path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_page(_: np.random.Generator, path: Path) -> None:
    """What a failed download leaves."""
    path.write_text("<!DOCTYPE html><html><body>404: Not Found</body></html>")


def a_pointer(_: np.random.Generator, path: Path) -> None:
    """What git leaves without its large files."""
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 440473133\n")


def a_link_to_nothing(_: np.random.Generator, path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


FILES = (cut, emptied, zeroed, scrambled, head_flipped, removed, a_folder, a_page, a_pointer, a_link_to_nothing)


# ------------------------------------------------------------------ damages of JSON

ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    3,
    10**7,
    10**30,
    2.5,
    float("nan"),
    float("inf"),
    "many",
    "",
    True,
    [],
    {},
    [1],
)


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    change(held)
    path.write_text(json.dumps(held), encoding="utf-8")


SIZES = {
    "bert": [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
    ],
    "roberta": ["hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size", "max_position_embeddings"],
    "gpt2": ["n_embd", "n_layer", "n_positions", "vocab_size"],
    "llama": ["hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size"],
    "t5": ["d_model", "num_layers", "d_kv", "d_ff", "vocab_size"],
}
"""Keys of config.json whose value the weights or the tokenizer contradict."""


def odd_size(rng: np.random.Generator, kind: str, path: Path) -> str:
    key, value = SIZES[kind][rng.integers(len(SIZES[kind]))], ODD[rng.integers(len(ODD))]
    edited(path / "config.json", lambda held: held.update({key: value}))
    return f"config.json: {key}={value!r}"


def odd_kind(rng: np.random.Generator, kind: str, path: Path) -> str:
    value = [None, 7, "", "nonesuch", *(other for other in tiny_models.KINDS if other != kind)][rng.integers(11)]
    edited(path / "config.json", lambda held: held.update(model_type=value))
    return f"config.json: model_type={value!r}"


def odd_shards(rng: np.random.Generator, _: str, path: Path) -> str:
    """An index of shards that is damaged, names what isn't there, or has too little."""
    from safetensors.numpy import load_file

    (path / "model.safetensors").rename(path / "model-00001-of-00001.safetensors")
    names = dict.fromkeys(load_file(path / "model-00001-of-00001.safetensors"), "model-00001-of-00001.safetensors")
    first = next(iter(names))
    odd: list[Any] = [
        "", "{", "[]", "null", "7", "{}", '{"weight_map": 7}', '{"weight_map": []}', '{"weight_map": {}}', "\0",
        {"weight_map": names | {first: "../model.safetensors"}}, {"weight_map": names | {first: 7}},
        {"weight_map": names | {first: None}}, {"weight_map": names | {first: "model-00002-of-00002.safetensors"}},
        {"weight_map": names | {first: str(path / "config.json")}}, {"weight_map": names | {first: ["a"]}},
        {"weight_map": names | {"none": "model-00001-of-00001.safetensors"}}, {"weight_map": {first: names[first]}},
    ]  # fmt: skip
    chosen = odd[rng.integers(len(odd))]
    data = (chosen if isinstance(chosen, str) else json.dumps(chosen)).encode()
    (path / "model.safetensors.index.json").write_bytes(data)
    return f"index: {data[:24]!r}..."


def odd_tokenizer(rng: np.random.Generator, kind: str, path: Path) -> str:
    held = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))
    changes: dict[str, Callable[[], object]] = {
        "no vocabulary": lambda: held["model"].update(vocab=type(held["model"]["vocab"])()),
        "no model": lambda: held.pop("model"),
        "a model of another type": lambda: held["model"].update(type="Nonesuch"),
        "no version": lambda: held.update(version=None),
        "ids past the table": lambda: held["model"].update(
            vocab={piece: i + 10**6 for piece, i in dict(held["model"]["vocab"]).items()}
        ),
        "a list": lambda: held.update(added_tokens=7),
        "half a decoder": lambda: held.update(decoder={"type": "ByteLevel"}, pre_tokenizer={"type": "Split"}),
    }
    name = list(changes)[rng.integers(len(changes))]
    if rng.random() < 0.2 and kind == "bert":
        (path / "tokenizer.json").write_bytes((whole("gpt2")[0] / "tokenizer.json").read_bytes())
        return "tokenizer.json of gpt2"
    if name == "ids past the table" and kind == "t5":
        name = "no model"
    changes[name]()
    (path / "tokenizer.json").write_text(json.dumps(held), encoding="utf-8")
    return f"tokenizer.json: {name}"


def odd_tokenizer_settings(rng: np.random.Generator, _: str, path: Path) -> str:
    key = ["model_max_length", "tokenizer_class", "unk_token", "extra_special_tokens"][rng.integers(4)]
    value = ODD[rng.integers(len(ODD))]
    edited(path / "tokenizer_config.json", lambda held: held.update({key: value}))
    return f"tokenizer_config.json: {key}={value!r}"


def odd_weights(rng: np.random.Generator, _: str, path: Path) -> str:
    """A weight that is no number, missing, or of another shape or type."""
    from safetensors.numpy import load_file, save_file

    held = load_file(path / "model.safetensors")
    names = [name for name in held if "position_ids" not in name]
    name, how = names[rng.integers(len(names))], ["nan", "inf", "-inf", "missing", "shape", "type"][rng.integers(6)]
    if how == "missing":
        held.pop(name)
    elif how == "shape":
        held[name] = np.concatenate([held[name], held[name]])
    elif how == "type":
        held[name] = np.zeros(held[name].shape, np.int8)
    else:
        held[name].reshape(-1)[rng.integers(held[name].size)] = float(how)
    save_file(held, path / "model.safetensors", {"format": "pt"})
    return f"{how} in {name}"


def fewer_layers(rng: np.random.Generator, kind: str, path: Path) -> str:
    key = {"gpt2": "n_layer", "t5": "num_layers"}.get(kind, "num_hidden_layers")
    n = int(rng.choice([0, 1, 3, 100, 10**9]))
    edited(path / "config.json", lambda held: held.update({key: n}))
    return f"config.json: {key}={n}"


def without_tokenizer(_rng: np.random.Generator, _kind: str, path: Path) -> str:
    for file in path.glob("tokenizer*"):
        file.unlink()
    return "no tokenizer"


CHECKPOINTS = (
    odd_size, odd_kind, odd_shards, odd_tokenizer, odd_tokenizer_settings, odd_weights, odd_weights, fewer_layers,
    without_tokenizer,
)  # fmt: skip


# ------------------------------------------------------------------ ELMo, word vectors


def odd_elmo(rng: np.random.Generator, path: Path) -> str:
    """Options that its weights contradict, or weights that hold what they shouldn't."""
    if rng.random() < 0.5:
        parts = [("lstm", "dim"), ("lstm", "projection_dim"), ("lstm", "n_layers"), ("char_cnn", "filters"),
                 ("char_cnn", "n_highway"), ("char_cnn", "n_characters"), ("char_cnn", "embedding")]  # fmt: skip
        section, key = parts[rng.integers(len(parts))]
        value = ODD[rng.integers(len(ODD))]
        if (key, value) in (("n_highway", 1), ("n_highway", True)):  # what it is
            value = -1
        edited(path / "options.json", lambda held: held[section].update({key: value}))
        return f"options.json: {section}.{key}={value!r}"
    with h5py.File(path / "weights.hdf5", "a") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = names[rng.integers(len(names))]
        held = file[name][...]
        how = ["nan", "inf", "missing", "shape", "text", "a group", "huge", "complex"][rng.integers(8)]
        del file[name]
        if how == "shape":
            file[name] = np.concatenate([held, held])
        elif how == "text":
            file[name] = [b"text"] * 3
        elif how == "a group":
            file.create_group(name)
        elif how == "huge":
            file[name] = np.full(held.shape, 1e300)
        elif how == "complex":
            file[name] = held.astype(np.complex64)
        elif how != "missing":
            held.reshape(-1)[rng.integers(held.size)] = float(how)
            file[name] = held
    return f"weights.hdf5: {how} in {name}"


def odd_words(rng: np.random.Generator, path: Path) -> str:
    lines = (path / "v.txt").read_text(encoding="utf-8").splitlines()
    at = int(rng.integers(1, len(lines)))
    fields = lines[at].split(" ")
    odd = [
        " ".join([*fields[:-1], "nan"]), " ".join([*fields[:-1], "1e999"]), " ".join([*fields[:-1], "x"]),
        " ".join(fields[:-1]), " ".join([*fields, "1"]), "", fields[0], "\0",
    ]  # fmt: skip
    lines[at] = odd[rng.integers(len(odd))]
    (path / "v.txt").write_text("\n".join(lines), encoding="utf-8")
    return f"v.txt: line {at} is {lines[at][:20]!r}"


# ------------------------------------------------------------------ cases


def drawn(rng: np.random.Generator, kind: str) -> tuple[str, Callable[[Path], str | None], str]:
    """What to do to a checkpoint of that kind: a name, the damage (which may name itself), the file that is read."""
    file = str(rng.choice(["v.txt", "v.bin", "v.safetensors"]))
    named = {"elmo": ["options.json", "weights.hdf5"], "words": [file]}.get(
        kind, ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    )
    seed = int(rng.integers(2**32))  # the damage draws anew each time, so that a name is known before it is done
    if rng.random() < 0.35 or (kind == "words" and file != "v.txt"):
        how, name = FILES[rng.integers(len(FILES))], named[rng.integers(len(named))]
        return f"{name} {how.__name__}", lambda path: how(np.random.default_rng(seed), path / name), file
    if kind in ("elmo", "words"):
        odd = {"elmo": odd_elmo, "words": odd_words}[kind]
        return odd.__name__, lambda path: odd(np.random.default_rng(seed), path), file
    change = CHECKPOINTS[rng.integers(len(CHECKPOINTS))]
    return change.__name__, lambda path: change(np.random.default_rng(seed), kind, path), file


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """`count` damaged checkpoints drawn from `seed`."""
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        kind = KINDS[rng.integers(len(KINDS))]
        name, damage, file = drawn(rng, kind)

        def attempt(kind: str = kind, damage: Any = damage, file: str = file, own: Path = folder / f"{place}") -> None:
            said: list[str] = []
            try:
                tried(kind, lambda path: said.append(damage(path) or ""), own, file)
            except Silent as silent:
                raise Silent(f"{silent} ({said})") from None
            finally:
                shutil.rmtree(own, ignore_errors=True)

        yield f"{kind}: {name}", attempt
