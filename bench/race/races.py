"""The races: what is compared with what, in which state of disk and cache."""

import contextlib
import gc
import time

from . import disk, peers
from .rounds import Contestant, Race, Unable
from .state import check_samples, erase, samples, seconds_of, touch

SYNCED = "file and folder fsynced; before each run the old file is removed and the disk is idle"
UNSYNCED = "into the page cache; before each run the old file is removed and the disk is idle"
COLD = "the file out of the page cache, which mincore confirms; "
WARM = "the file in the page cache, read once before; "
TOUCHED = "until a byte of every page is read; freeing is not counted"


class Bench:
    """The state, both sides of it, and a folder for their files."""

    def __init__(self, ours, folder, arrays, size, wanted):
        """arrays is None where the program and the floors run alone; wanted picks peers by name, of
        which None wants none."""
        self.size = size
        self.ours = ours
        self.folder = folder
        self.arrays = arrays
        self.alone = wanted is None
        self._expected = samples(arrays or {})
        self._checked = set()
        self._peers = {}
        self._wanted = [
            each
            for each in (() if arrays is None or wanted is None else peers.ALL)
            if not wanted or any(word in (each.name or "") + each.load_name for word in wanted)
        ]

    def peer(self, kind):
        """@raise Unable where it is not installed."""
        if self.arrays is None:
            raise Unable("numpy is not installed")
        if kind not in self._peers:
            try:
                self._peers[kind] = kind(self.arrays)
            except ImportError as error:
                raise Unable(f"not installed: {error}") from error
        return self._peers[kind]

    def _clear(self, path):
        disk.remove(path)
        self.ours("settle", self.folder)
        self.ours("touch", self.folder, self.size)

    def _warm(self, path):
        gc.collect()
        disk.warm(path)
        self.ours("touch", self.folder, self.size)

    # --- Saving -----------------------------------------------------------------------------------

    def _our_save(self, name, sync, io="automatic"):
        path = self.folder / "saved.thalia"

        def run():
            seconds = self.ours("save", path, sync, io)
            disk.remove(path)
            return seconds

        return Contestant(name, run, lambda: self._clear(path), "ours")

    def _peer_save(self, kind, durable):
        path = self.folder / f"saved{kind.suffix}"
        own_kind = getattr(kind, "kind", "peer")

        def run():
            peer = self.peer(kind)

            def save():
                peer.save(path, durable)
                if durable and own_kind != "ours":
                    disk.make_durable(path)

            seconds = seconds_of(save)
            disk.remove(path)
            return seconds

        return Contestant(kind.name, run, lambda: self._clear(path), own_kind)

    def _savers(self):
        return [each for each in self._wanted if each.name and each is not peers.TorchMapped]

    def save_durable(self, what):
        raw = self.folder / "floor"
        ours = [
            self._our_save("Thalia", "full"),
            self._our_save("Thalia, io=buffered", "full", "buffered"),
        ]
        floor = Contestant(
            f"floor: {disk.floor_name()}, fsync",
            lambda: disk.fio(raw, self.size, "write"),
            lambda: self._clear(raw),
            "floor",
        )
        others = [self._peer_save(kind, True) for kind in self._savers()]
        aims = {other.name: ("at least", 3.0) for other in others}
        aims |= {floor.name: ("at least", 0.95), ours[1].name: ("at least", 1.3)}
        return Race(f"durable save, {what}", SYNCED, [*ours, floor, *others], self.size, aims)

    def save_unsynced(self, what):
        others = [self._peer_save(kind, False) for kind in self._savers()]
        aims = {peers.Safetensors.name: ("at least", 1.0)}
        ours = self._our_save("Thalia", "none")
        return Race(f"save, not durable, {what}", UNSYNCED, [ours, *others], self.size, aims)

    def save_small(self, what, durable):
        """Of a state in many small tensors; only the peers that take those."""
        kinds = [k for k in self._savers() if k in (peers.TorchSave, peers.Safetensors)]
        ours = self._our_save("Thalia", "full" if durable else "none")
        others = [self._peer_save(kind, durable) for kind in kinds]
        name = f"{'durable save' if durable else 'save, not durable'}, {what}"
        aims = {peers.Safetensors.name: ("at least", 2.0)}
        return Race(name, SYNCED if durable else UNSYNCED, [ours, *others], self.size, aims)

    def save_background(self, what):
        """How long the caller stands still."""
        path = self.folder / "saved.thalia"
        ours = Contestant("Thalia", lambda: self.ours("background", path), lambda: self._clear(path), "ours")
        floor = Contestant("floor: memcpy, one core", lambda: self.ours("copy"), kind="floor")
        aims = {floor.name: ("at least", round(1 / 1.1, 2))}
        conditions = "the time until the caller goes on; both into memory that was written to before"
        return Race(f"save in the background, {what}", conditions, [ours, floor], self.size, aims)

    # --- Loading ----------------------------------------------------------------------------------

    def make_files(self, say):
        """The file that each contestant loads, on the disk."""
        self.ours("save", self.folder / "state.thalia", "full", "automatic")
        self.ours("forget")  # some peers take twice the state to save it
        makers = {kind.suffix: kind for kind in reversed(peers.ALL) if kind.name}
        for suffix in {kind.suffix for kind in self._wanted}:
            kind = makers[suffix]
            path = self.folder / f"state{suffix}"
            say(f"preparing {path.name}")
            try:
                self.peer(kind).save(path, True)
                disk.make_durable(path)
            except Exception as error:  # its load says so
                say(f"{path.name}: {error}")
                disk.remove(path)
        self.ours("settle", self.folder)

    def _cold(self, path):
        gc.collect()  # what maps the file still
        for each in disk.files_of(path):
            if each.stat().st_size:
                self.ours("cold", each)
        self.ours("touch", self.folder, self.size)

    def _our_load(self, name, into, verify, cold):
        path = self.folder / "state.thalia"
        return Contestant(
            name,
            lambda: self.ours("load", path, into, verify),
            (lambda: self._cold(path)) if cold else (lambda: self._warm(path)),
            "ours",
        )

    def _peer_load(self, kind, cold):
        path = self.folder / f"state{kind.suffix}"
        ended = []  # when all of it was there; to free it is not counted

        def use(loaded):
            touch(loaded)
            ended.append(time.perf_counter())
            if kind not in self._checked:  # in the round that does not count
                check_samples(self._expected, loaded)
                self._checked.add(kind)

        def run():
            peer = self.peer(kind)
            if not path.exists():
                raise Unable("it could not be saved")
            if kind not in self._checked and hasattr(kind, "fills_state"):
                erase(self._expected, self.arrays)
            start = time.perf_counter()
            peer.load(path, use)
            return ended.pop() - start

        prepare = (lambda: self._cold(path)) if cold else (lambda: self._warm(path))
        return Contestant(kind.load_name, run, prepare, getattr(kind, "kind", "peer"))

    def _peer_loads(self, cold, fills_state):
        kinds = [kind for kind in self._wanted if hasattr(kind, "fills_state") == fills_state]
        return [self._peer_load(kind, cold) for kind in kinds]

    def loads_in_place(self, what):
        return [self.load_cold_in_place(what), self.load_warm_in_place(what)]

    def loads_afresh(self, what):
        return [self.load_cold_fresh(what), self.load_warm_views(what)]

    def forget_state(self):
        """All but its names: some peers take several times the state to load it afresh."""
        for kind in (*self._wanted, *peers.OWN):
            with contextlib.suppress(Unable):
                vars(self.peer(kind)).pop("_tensors", None)
        for name in self.arrays or ():
            self.arrays[name] = None
        self.ours("forget")
        gc.collect()

    def load_cold_in_place(self, what):
        """Into memory that was written to before, as a server's buffers."""
        ours = self._our_load("Thalia, stream, verified", "stream_in_place", "on", True)
        unverified = self._our_load("Thalia, stream, unverified", "stream_in_place", "off", True)
        copies = self._our_load("Thalia, copies, unverified", "copy_in_place", "off", True)
        path = self.folder / "state.thalia"
        floor = Contestant(
            f"floor: {disk.floor_name()}",
            lambda: disk.fio(path, self.size, "read"),
            lambda: self._cold(path),
            "floor",
        )
        aims = {floor.name: ("at least", 0.95), unverified.name: ("at least", round(1 / 1.05, 2))}
        contestants = [ours, unverified, copies, floor, *self._peer_loads(True, True)]
        name = f"cold load into memory that is there, {what}"
        return Race(name, COLD + "every byte is copied", contestants, self.size, aims)

    def load_cold_fresh(self, what):
        """To memory that is allocated on the way, and as a mapping."""
        ours = self._our_load("Thalia, stream, verified", "stream", "on", True)
        copies = self._our_load("Thalia, copies, unverified", "copy", "off", True)
        views = self._our_load("Thalia, views, unverified", "views", "off", True)
        aims = {
            peers.Safetensors.load_name: ("at least", 2.5),
            peers.TorchMapped.load_name: ("at least", 2.0),
        }
        contestants = [ours, copies, views, *self._peer_loads(True, False)]
        return Race(f"cold load, {what}", COLD + TOUCHED, contestants, self.size, aims)

    def load_warm_in_place(self, what):
        ours = self._our_load("Thalia, copies", "copy_in_place", "off", False)
        verified = self._our_load("Thalia, copies, verified", "copy_in_place", "on", False)
        stream = self._our_load("Thalia, stream", "stream_in_place", "off", False)
        aims = {verified.name: ("at most", 1.25)}
        contestants = [ours, verified, stream, *self._peer_loads(False, True)]
        name = f"warm load into memory that is there, {what}"
        return Race(name, WARM + "every byte is copied", contestants, self.size, aims)

    def load_warm_views(self, what):
        ours = self._our_load("Thalia, views", "views", "off", False)
        verified = self._our_load("Thalia, views, verified", "views", "on", False)
        aims = {peers.Safetensors.load_name: ("at least", 1.0)}
        contestants = [ours, verified, *self._peer_loads(False, False)]
        return Race(f"warm load, {what}", WARM + TOUCHED, contestants, self.size, aims)

    # --- Opening ----------------------------------------------------------------------------------

    def open_one(self, count):
        thalia, other = self.folder / f"{count}.thalia", self.folder / f"{count}.safetensors"
        self.ours("make", "f32", count, 64, other, thalia)
        tensor = f"layers.{count // 3 // 8}.w{count // 3 % 8}"

        def open_peer():
            from safetensors import safe_open

            with safe_open(other, framework="numpy") as file:
                touch({tensor: file.get_tensor(tensor)})

        runs = max(1, 10_000 // count)
        ours = Contestant("Thalia", lambda: self.ours("open", thalia, tensor, 50), kind="ours")
        contestants = [ours]
        if not self.alone:
            peer = "safetensors safe_open"
            contestants.append(Contestant(peer, lambda: seconds_of(lambda: [open_peer() for _ in range(runs)]) / runs))
        aims = {"safetensors safe_open": ("at least", 20.0)} if count == 100_000 else {}
        conditions = "both files in the page cache"
        return Race(f"open, read one of {count:,}", conditions, contestants, 0, aims)
