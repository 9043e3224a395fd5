"""Trees whose keys are chosen to collide in Python's tables."""

import time

import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import _leaves

#: Python's integers are taken modulo this number, sys.hash_info.modulus.
MODULUS = (1 << 61) - 1


def integer(number):
    return {"int": str(number)}


def tree(kind, keys):
    return {kind: [[key, 0] for key in keys] if kind in ("dict", "ordered") else keys}


def value(node):
    with _leaves.tree_rules("some/file.thalia"):
        return _leaves.value_of(node, lambda _: _leaves.NO_LEAF)


@pytest.mark.parametrize("kind", ["dict", "ordered", "set", "frozenset"])
def test_keys_that_hash_alike_are_refused(kind):
    alike = [integer(MODULUS * n) for n in range(20_000)]
    assert len(value(tree(kind, alike[: _leaves.ALIKE]))) == _leaves.ALIKE
    began = time.process_time()
    for keys in (alike, alike[: _leaves.ALIKE + 1], [{"tuple": [key]} for key in alike]):
        with pytest.raises(thalia.FormatError, match="keys of one dictionary hash alike") as caught:
            value(tree(kind, keys))
        assert caught.value.code == "limit_exceeded"
    assert time.process_time() - began < 4


@pytest.mark.parametrize("kind", ["dict", "ordered", "set", "frozenset"])
def test_any_number_of_other_keys_is_taken(kind):
    for keys in ([str(n) for n in range(5000)], [*range(5000)], [integer(n * 10**20) for n in range(5000)]):
        assert len(value(tree(kind, keys))) == 5000
