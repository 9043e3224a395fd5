"""Which tensors of a state are stored in half precision. docs/format/states.md, "Precision"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ._brain_arrays import dense_bytes
from ._convert import fits
from ._keywords import suggests
from ._tensor import Tensor
from .errors import UsageError, make_error

Precision = Literal["fp32", "fp16", "bf16", "keep", "auto"]
_PRECISIONS = ("fp32", "fp16", "bf16", "keep", "auto")
CATEGORIES = ("weights", "biases", "membrane", "traces", "thresholds", "conductances")


@suggests
@dataclass(frozen=True)
class PrecisionPolicy:
    """A precision for each category of tensors, and for patterns of their names.

        PrecisionPolicy(weights="fp16", traces="fp16")
        PrecisionPolicy(default="fp32", patterns={"weights/*": "fp16", "membrane": "fp32"})

    "fp32", "fp16", "bf16", "keep" (as it is), or "auto": fp16 above 1 MiB, else fp32. A category
    without one has that of `default`. Only floating point tensors are converted, and loading gives
    them back in the type that they had. What a category holds goes by roles and names.

    patterns: "*" stands for any characters and "?" for one; "." and "/" are the same. One fits a
        tensor's dotted path ("regions.cortex.weights.w_ff") or all of it behind a separator. The
        first that fits counts, before the categories.
    match: "original" sorts tensors into categories as the original program did: by texts that occur
        anywhere in the path.
    Raises UsageError for a precision that is none of these.
    """

    weights: Precision | None = None
    biases: Precision | None = None
    membrane: Precision | None = None
    traces: Precision | None = None
    thresholds: Precision | None = None
    conductances: Precision | None = None
    default: Precision = "fp32"
    patterns: Mapping[str, Precision] = field(default_factory=dict)
    match: Literal["roles", "original"] = "roles"

    def __post_init__(self) -> None:
        for name in (*CATEGORIES, "default"):
            precision = getattr(self, name)
            if precision is not None or name == "default":
                _check(name, precision, _PRECISIONS)
        for pattern, precision in self.patterns.items():
            if not isinstance(pattern, str) or not pattern:
                raise _bad("patterns", pattern, "a pattern of tensors")
            _check(f"patterns[{pattern!r}]", precision, _PRECISIONS)
        _check("match", self.match, ("roles", "original"))

    def text(self, patterns: Iterable[str] | None = None) -> str:
        """As `convert(precision=…)` and files have it; of the patterns with these alone."""
        kept = self.patterns if patterns is None else [p for p in self.patterns if p in set(patterns)]
        items = [f"{_quoted(pattern)}={self.patterns[pattern]}" for pattern in kept]
        items += [f"{name}={getattr(self, name)}" for name in CATEGORIES if getattr(self, name) is not None]
        items.append(f"default={self.default}")
        return ",".join([*items, "match=original"] if self.match == "original" else items)


def policy_of(policy: str | PrecisionPolicy | None) -> str | PrecisionPolicy | None:
    """A policy that does something, by its name or itself; None for one that keeps all. Raises UsageError."""
    if policy is None or policy == "keep" or policy == PRECISION_POLICIES["keep"]:
        return None
    if isinstance(policy, PrecisionPolicy):
        return policy
    if not isinstance(policy, str) or policy not in PRECISION_POLICIES:
        known = ", ".join(PRECISION_POLICIES)
        raise make_error(
            UsageError,
            f"unknown precision policy: precision_policy: got {policy!r}, expected {known}, or a PrecisionPolicy",
            "bad_argument",
            field="precision_policy",
            value=str(policy),
            expected=known,
        )
    return policy


def policy_text(policy: str | PrecisionPolicy, paths: Iterable[str]) -> str:
    """What convert() is given. A pattern that fits none of the paths is left out: not every state has
    what a policy speaks of."""
    if isinstance(policy, str):
        return policy
    all_paths = list(paths)
    return policy.text([p for p in policy.patterns if any(fits(p, path) for path in all_paths)])


def policy_from(text: object) -> str | PrecisionPolicy | None:
    """The policy that a file names; None where it says nothing that is understood."""
    if not isinstance(text, str) or text in ("keep", ""):
        return None
    if text in PRECISION_POLICIES:
        return text
    facts: dict[str, Any] = {}
    patterns: dict[str, Any] = {}
    place = 0
    item = re.compile(r'("(?:[^"\\]|\\.)*"|[^",=]+)=(\w+)(?:,|$)')
    while place < len(text):
        found = item.match(text, place)
        if found is None:
            return None
        key, precision = found.groups()
        if key.startswith('"') or re.search(r"[*?./]", key):
            patterns[re.sub(r"\\(.)", r"\1", key[1:-1]) if key.startswith('"') else key] = precision
        else:
            facts[key] = precision
        place = found.end()
    try:
        return PrecisionPolicy(**{"default": "keep", **facts}, patterns=patterns)
    except (UsageError, TypeError):
        return None


def paths_of(region: str, component: str, tensor: str) -> tuple[str, str]:
    """What a pattern may fit: the dotted path from the state's root, and region and name."""
    return f"regions.{region}.{component}.{tensor}", f"{region}/{tensor}"


def statistics(tensors: Iterable[Tensor]) -> dict[str, Any]:
    """Tensors and bytes of each precision, as the original program counted them: dense bytes."""
    names = {"f32": "fp32", "f16": "fp16", "f64": "fp64", "i8": "int", "i16": "int", "i32": "int", "i64": "int"}
    counts: dict[str, int] = dict.fromkeys(("fp32", "fp16", "fp64", "int", "other"), 0)
    sizes = dict(counts)
    for tensor in tensors:
        name = names.get(tensor.dtype, "other")
        counts[name] += 1
        sizes[name] += dense_bytes(tensor)
    total = sum(sizes.values())
    found: dict[str, Any] = {
        name: {
            "count": counts[name],
            "bytes": size,
            "mb": size / (1 << 20),
            "percent": 100 * size / total if total else 0.0,
        }
        for name, size in sizes.items()
    }
    found["total_mb"] = total / (1 << 20)
    return found


def _check(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise _bad(name, value, ", ".join(allowed))


def _bad(name: str, value: object, expected: str) -> UsageError:
    error = make_error(
        UsageError,
        f"PrecisionPolicy.{name}: got {value!r}, expected {expected}",
        "bad_argument",
        field=name,
        value=str(value),
        expected=expected,
    )
    assert isinstance(error, UsageError)
    return error


def _quoted(pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


#: Those that `precision_policy` takes by name.
PRECISION_POLICIES: dict[str, PrecisionPolicy] = {
    "fp32": PrecisionPolicy(),
    "fp16": PrecisionPolicy(weights="fp16", traces="fp16", conductances="fp16"),
    "bf16": PrecisionPolicy(weights="bf16", traces="bf16", conductances="bf16"),
    "mixed": PrecisionPolicy(weights="auto", traces="fp16", conductances="fp16"),
    "keep": PrecisionPolicy(default="keep"),
}
