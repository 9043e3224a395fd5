"""Links in the way of an output: the one that a caller names is followed, and no other."""

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy

ARRAYS = {"w": np.arange(4, dtype=np.float32)}


@pytest.mark.parametrize("name", ["m.thalia", "m.safetensors"])
def test_a_link_that_the_caller_names_is_followed_unless_it_is_not_to_be(tmp_path, name):
    target, link = tmp_path / "target", tmp_path / name
    target.write_bytes(b"old")
    link.symlink_to(target)
    with pytest.raises(thalia.UsageError, match="a symbolic link"):
        thalia_numpy.save_file(ARRAYS, link, follow_link=False)
    assert target.read_bytes() == b"old"
    thalia_numpy.save_file(ARRAYS, link)
    assert link.is_symlink()
    assert np.array_equal(thalia_numpy.load_file(link)["w"], ARRAYS["w"])
    assert target.read_bytes() != b"old"


def test_a_name_that_follows_from_another_one_is_never_written_through(tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (tmp_path / "m.thalia.sha256").symlink_to(precious)
    with pytest.raises(thalia.UsageError, match=r"m\.thalia\.sha256.*a symbolic link"):
        thalia_numpy.save_file(ARRAYS, tmp_path / "m.thalia", sha256=True)
    assert precious.read_bytes() == b"precious"
    assert not (tmp_path / "m.thalia").exists()
