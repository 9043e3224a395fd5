"""Which tensors of a state are stored in half precision. docs/format/states.md, "Precision"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .. import _core
from .._keywords import suggests
from ..errors import UsageError, make_error

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
        tensor's dotted path ("regions.cortex.weights.w_ff") or all of it after a separator. The
        first that fits counts, before the categories.
    match: "original" sorts tensors into categories as the original program did: by texts that occur
        anywhere in the path.
    Raises UsageError for a precision that is not one of these.
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

    def text(self) -> str:
        """As `convert(precision=…)` and files have it."""
        categories = {name: getattr(self, name) or self.default for name in CATEGORIES}
        return _core.precision_text(
            {**categories, "default": self.default}, list(self.patterns.items()), self.match == "original"
        )


def policy_text(policy: str | PrecisionPolicy | None) -> str | None:
    """What the library is given: the text of a policy, which it parses. Raises UsageError for anything else."""
    if policy is None or isinstance(policy, str):
        return policy
    if isinstance(policy, PrecisionPolicy):
        return policy.text()
    raise make_error(
        UsageError,
        f"precision_policy: got {policy!r}, expected the name or the text of a precision policy, or a PrecisionPolicy",
        "bad_argument",
        field="precision_policy",
        value=str(policy),
    )


def _named(name: str) -> PrecisionPolicy:
    members: dict[str, Any] = _core.precision_policy(name)
    default = members.pop("default")
    return PrecisionPolicy(default=default, **{key: value for key, value in members.items() if value != default})


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


#: Those that `precision_policy` takes by name.
PRECISION_POLICIES: dict[str, PrecisionPolicy] = {
    name: _named(name) for name in ("fp32", "fp16", "bf16", "mixed", "keep")
}
