"""A passport in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ctxexp_compare.passport.match import LayerIdentity, Passport


def describe(passport: Passport) -> str:
    """The passport's sentence: which layers here are which hidden states, what is missing, and how the arrays lie."""
    parts = [_run(run) for run in _runs(passport.layers)]
    if missing := passport.missing:
        parts.append(f"layer{_s(missing)} {_ranges(missing)} {'are' if len(missing) > 1 else 'is'} missing")
    return "; ".join([*parts, *passport.arrangement.notes])


def _runs(layers: Sequence[LayerIdentity]) -> list[list[LayerIdentity]]:
    """Neighbours that stand in one relation to the checkpoint's layers."""
    runs: list[list[LayerIdentity]] = []
    for one in layers:
        last = runs[-1][-1] if runs else None
        same = last is not None and one.layer is not None and last.layer is not None
        if same and last is not None and one.layer is not None and last.layer is not None:
            steps = one.name - last.name, one.layer - last.layer
            alike = (one.norm, one.is_unit_length) == (last.norm, last.is_unit_length)
            if steps == (1, 1) and alike:
                runs[-1].append(one)
                continue
        runs.append([one])
    return runs


def _run(run: Sequence[LayerIdentity]) -> str:
    first, last = run[0], run[-1]
    if first.layer is None:
        return (
            f"layer {first.name} here is no hidden state of this checkpoint (nearest: {first.next_layer}, rows differ "
            f"by {first.error:.2g} of their length)"
        )
    suffix = (f" {first.norm}" if first.norm else "") + (", scaled to length 1" if first.is_unit_length else "")
    error = max(one.error for one in run)
    suffix += f" (rows differ by {error:.2g} of their length)" if error > 1e-3 else ""
    if len(run) == 1:
        return f"layer {first.name} here is hidden_states[{first.layer}]{suffix}"
    here = f"layers {first.name} to {last.name} here are"
    return f"{here} hidden_states[{first.layer}] to hidden_states[{last.layer}]{suffix}"


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in words: 0, 3 to 5 and 37."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    texts = [text for p in parts for text in ([f"{p[0]} to {p[-1]}"] if len(p) > 2 else map(str, p))]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _s(numbers: Sequence[int]) -> str:
    return "s" if len(numbers) > 1 else ""
