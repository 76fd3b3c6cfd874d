"""A model of sentence-transformers around its network: the prompt before a text, and the modules that make one vector
of the network's hidden states.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.errors import ModelError, error_text
from ctxexp.models.transformer.checkpoint import Checkpoint
from ctxexp.models.transformer.ledger import ledger, unknown_keys

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MODES = {"cls_token": "cls", "mean_tokens": "mean", "lasttoken": "last"}  # of its Pooling, by our names
OWN = ("mean", "cls", "last")  # poolings that need no library
LIBRARY = "pipeline"  # the name of any other one


@dataclass(frozen=True)
class Pipeline:
    """The modules of a model of sentence-transformers, and its settings; without modules it is no such model.

    `modules` are their classes, the network's first. `pooling` is a pooling of ours, or LIBRARY. `longest` is the
    number of pieces that are read, `facts` are what decides its vectors, by name. `source` is its folder, or the model.
    `unknown_keys` are settings that the ledger doesn't know, or parts that the library didn't write.
    """

    modules: tuple[str, ...] = ()
    prompt: str = ""
    pooling: str = "mean"
    include_prompt: bool = True
    lower: bool = False
    longest: object = None
    truncate_dim: int | None = None
    facts: Mapping[str, str | int | bool] = field(default_factory=dict)
    source: Path | SentenceTransformer | None = None
    unknown_keys: tuple[str, ...] = ()

    @property
    def needs_library(self) -> bool:
        """Whether it has modules beyond pooling and normalising, or settings of which nobody knows what they do."""
        is_own = self.pooling in OWN and {*self.modules[2:]} <= {"Normalize"} and not self.unknown_keys
        return bool(self.modules) and not is_own

    @property
    def normalizes(self) -> bool:
        """Whether vectors get the length 1."""
        return "Normalize" in self.modules

    @classmethod
    def of_folder(cls, checkpoint: Checkpoint) -> Pipeline:
        """The pipeline whose network is the checkpoint, in its folder or the one above. Raises ModelError for files
        that sentence-transformers can't have written."""
        longest, folder = checkpoint.sentence_settings.get("max_seq_length"), checkpoint.folder
        for root in (folder, folder.parent):
            try:
                listing = _json(root / "modules.json") or [{"path": None}]
                if listing[0]["path"] is None or root / listing[0]["path"] != folder:
                    continue
                settings = _json(root / "config_sentence_transformers.json")
                if settings.get("model_type", "SentenceTransformer") != "SentenceTransformer":
                    continue
                modules = [(_name(one["type"]), _json(root / one["path"] / "config.json")) for one in listing]
                own = checkpoint.sentence_settings
                others = [("modules", listing), ("config_sentence_transformers", settings), *modules]
                keys = [key for name, one in others if name in ledger() for key in unknown_keys(one, name)]
                keys += unknown_keys({**own, "do_lower_case": False}, "sentence_config")
                return cls._of(modules, settings | own, root, keys)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise ModelError(
                    f"{root}: its files of sentence-transformers (modules.json, config_sentence_transformers.json and "
                    f"the modules' config.json) can't be read ({error_text(error)}); copy or download them again"
                ) from None
        return cls(longest=longest)

    @classmethod
    def of_model(cls, model: Any) -> Pipeline:
        """The pipeline of a SentenceTransformer in memory; one without modules for any other object."""
        from ctxexp.models.transformer.identity import own_code  # with torch

        if "SentenceTransformer" not in [one.__name__ for one in type(model).__mro__]:
            return cls()
        keys = ("prompts", "default_prompt_name", "truncate_dim", "max_seq_length")
        modules: list[tuple[str, Any]] = [
            (
                _name(f"{type(one).__module__}.{type(one).__name__}"),
                getattr(one, "get_config_dict", dict)() if i else {},
            )
            for i, one in enumerate(model)
        ]
        return cls._of(modules, {key: getattr(model, key, None) for key in keys}, model, [own_code(model)])

    @classmethod
    def _of(
        cls,
        modules: Sequence[tuple[str, Mapping[str, Any]]],
        settings: Mapping[str, Any],
        source: Any,
        unknown_keys: Sequence[str],
    ) -> Pipeline:
        names, prompts = tuple(name for name, _ in modules), settings.get("prompts") or {}
        default, truncate = settings.get("default_prompt_name"), settings.get("truncate_dim")
        if default is not None and default not in prompts:
            raise ValueError(f"default_prompt_name={default!r} isn't among its prompts, {[*prompts]}")
        pooling = modules[1][1] if names[1:2] == ("Pooling",) else {}
        modes = _modes(pooling)
        facts: dict[str, str | int | bool] = {
            "modules": ", ".join(names),
            "prompt": repr(prompts.get(default) or ""),
            "include_prompt": bool(pooling.get("include_prompt", True)),
            "mode": "+".join(modes),
            "lower-cased": bool(settings.get("do_lower_case")),
            **{f"prompt {name}": repr(text) for name, text in sorted(prompts.items()) if text},
            **{
                f"{i}_{name} {key}": str(value)
                for i, (name, config) in enumerate(modules)
                if i and name != "Pooling"
                for key, value in sorted(config.items())
                if value not in (None, False, "sentence_embedding")  # defaults that older versions don't write
            },
        }
        return cls(
            names, prompts.get(default) or "", modes[0] if len(modes) == 1 and modes[0] in OWN else LIBRARY,
            bool(facts["include_prompt"]), bool(facts["lower-cased"]), settings.get("max_seq_length"), truncate, facts,
            source, tuple(filter(None, unknown_keys)),
        )  # fmt: skip


def _name(path: str) -> str:
    """A module's class: of the library's own the last part of its path."""
    return path.rpartition(".")[2] if path.startswith("sentence_transformers.") else path


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _modes(config: Mapping[str, Any]) -> list[str]:
    """The modes of a Pooling, by our names; older versions have a key for each."""
    named = config.get("pooling_mode")
    modes = [named] if isinstance(named, str) else named
    modes = modes or [key.removeprefix("pooling_mode_") for key, on in config.items() if on and "_mode_" in key]
    return [MODES.get(mode, mode) for mode in modes]
