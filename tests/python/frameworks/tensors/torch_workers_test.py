"""Workers of torch's DataLoader that read what is mapped, and hold it at their end."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import thalia_checkpoint as thalia  # noqa: E402
from thalia_checkpoint.torch import load, save, save_file  # noqa: E402

CODE = """
import sys
from torch.utils.data import DataLoader, Dataset
import thalia_checkpoint as thalia
from thalia_checkpoint.torch import load

class Rows(Dataset):
    def __init__(self, path, state, at_once):
        self.path, self.state, self.held = path, state, None
        if at_once:
            self.open()

    def open(self):
        file = thalia.open(self.path)
        flat, state = load(self.path, mmap=True), load(self.state, mmap=True)
        self.held = file, file["rows"], file["rows"].torch(), flat, state

    def __len__(self):
        return 64

    def __getitem__(self, i):
        if self.held is None:
            self.open()
        _, tensor, mapped, flat, state = self.held
        return tensor.torch()[i], mapped[i], flat["rows"][i], state["model"]["rows"][i]

if __name__ == "__main__":
    path, state, method, opened, kept = sys.argv[1:]
    rows = Rows(path, state, opened == "before")
    for batch in (None, 8):  # without a batch a worker sends the rows themselves, which are mapped
        loader = DataLoader(
            rows, batch_size=batch, num_workers=2, multiprocessing_context=method, persistent_workers=kept == "kept"
        )
        assert all((each == seen[0]).all() for seen in loader for each in seen)
        print(sum(float(part.sum()) for seen in loader for part in seen))
"""


@pytest.mark.usefixtures("silent_tracker")
@pytest.mark.parametrize("kept", ["kept", "ended"])
@pytest.mark.parametrize("method, opened", [("fork", "before"), ("fork", "within"), ("spawn", "within")])
def test_workers_of_a_loader_hold_mapped_tensors_at_their_end(tmp_path, method, opened, kept):
    rows = torch.arange(64 * 32, dtype=torch.float32).reshape(64, 32)
    save_file({"rows": rows}, tmp_path / "rows.thalia")
    save({"model": {"rows": rows}, "step": 3}, tmp_path / "state.thalia")
    (tmp_path / "rows.py").write_text(CODE)
    words = [tmp_path / "rows.py", tmp_path / "rows.thalia", tmp_path / "state.thalia", method, opened, kept]
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=240)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == [str(4 * float(rows.sum()))] * 2
    for name in ("rows.thalia", "state.thalia"):  # what workers share is not the file's
        assert thalia.verify(tmp_path / name).ok
    assert torch.equal(load(tmp_path / "state.thalia")["model"]["rows"], rows)
