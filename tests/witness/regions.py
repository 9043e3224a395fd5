"""Regions: headers, the pieces behind them, and how the tensors lie in those."""

import hashlib

import structures as s
from structures import ROLES

PIECES = {
    "weights": (0, 9, 10, 11),
    "homeostatic": (1,),
    "dynamic_state": (2, 3, 4, 5),
    "other": (6, 7, 8),
}


def short_name(name):
    """The 32-byte form of a region's name."""
    text = name.encode("utf-8")
    if len(text) > 31:
        digest = hashlib.sha256(text).hexdigest()[:8]
        text = text[:22].decode("utf-8", errors="ignore").encode("utf-8") + b"~" + digest.encode()
    return text.ljust(32, b"\0")


class Region:
    def __init__(self, file, number, name):
        self.file = file
        self.name = name
        self.short_name = short_name(name)
        header = file.header
        entry = s.REGION_INDEX_ENTRY.read(file.data, header.region_index_offset + 48 * number)
        entry.require("region_name", entry.region_name == self.short_name, self.short_name.hex(" "))
        entry.require("data_offset", entry.data_offset % 64 == 0, "a multiple of 64")
        entry.require("data_length", entry.data_length >= 192, "192 or more")
        entry.require(
            "data_offset",
            entry.data_offset >= 256 and entry.data_offset + entry.data_length <= header.directory_offset,
            f"within [256, {header.directory_offset})",
        )
        self.entry = entry
        self.offset = entry.data_offset
        self.end = entry.data_offset + entry.data_length
        self.header = s.REGION_HEADER.read(file.data, self.offset)
        self.extension = s.REGION_EXTENSION.read(file.data, self.offset + 64)
        file.claim(self.offset, 192, f"headers of region {name!r}")
        self.header.require("neuron_type", self.header.neuron_type <= 2, "0 to 2")
        self.header.require("encoding_type", self.header.encoding_type <= 1, "0 or 1")
        self.extension.require("extension_length", self.extension.extension_length == 128, 128)
        self.extension.require_zero()
        self.read_pieces()

    def read_pieces(self):
        """Offsets and lengths, in their order and inside the region; the two JSON texts."""
        self.pieces = {}
        at = 192
        for name in ("config", *PIECES, "region_metadata"):
            record = self.header if hasattr(self.header, f"{name}_offset") else self.extension
            offset, length = getattr(record, f"{name}_offset"), getattr(record, f"{name}_length")
            self.pieces[name] = (record, offset, length)
            record.require(f"{name}_offset", length > 0 or offset == 0, "0: no such piece")
            if length == 0:
                continue
            region_length = self.end - self.offset
            record.require(f"{name}_offset", offset >= at, f"{at} or more")
            record.require(f"{name}_length", offset + length <= region_length, region_length)
            at = offset + length
        self.entry.require("data_length", self.entry.data_length == at, at)

        def text(name, starts_right, bound):
            record, offset, length = self.pieces[name]
            record.require(f"{name}_offset", length == 0 or starts_right(offset), bound)
            return self.file.json_text("region", self.offset + offset, length) if length else None

        self.config = text("config", lambda offset: offset == 192, 192)
        self.metadata = text("region_metadata", lambda offset: offset % 64 == 0, "a multiple of 64")

    def check_pieces(self, tensors):
        """The pieces are those that the region's tensors make."""
        for name, roles in PIECES.items():
            record, offset, length = self.pieces[name]
            own = sorted(
                (t.entry.stored_offset, t.entry.stored_length, t.entry.role) for t in tensors if t.entry.role in roles
            )
            if not own:
                record.require(f"{name}_offset", (offset, length) == (0, 0), "0: no such tensor")
                if name == "dynamic_state":
                    for component in ("oscillator_offset", "neuromodulator_offset"):
                        record.require(component, getattr(record, component) == 0, 0)
                continue
            first = own[0][0] - 32 - self.offset
            end = own[-1][0] + own[-1][1] - self.offset
            record.require(f"{name}_length", offset + length == end, end - offset)
            if name == "homeostatic":
                self.check_homeostatic(record, offset, first)
            elif name == "dynamic_state":
                self.check_dynamic_state(record, offset, first, own)
            else:
                record.require(f"{name}_offset", offset == first, first)
        weights = [t for t in tensors if t.entry.role in PIECES["weights"]]
        first = min(weights, key=lambda t: t.entry.stored_offset, default=None)
        csr = first is not None and first.result_encoding == "csr"
        self.header.require("encoding_type", self.header.encoding_type == csr, int(csr))

    def check_homeostatic(self, record, offset, first):
        at = self.offset + offset
        record.require("homeostatic_offset", at % 64 == 16, "remainder 16 when divided by 64")
        record.require("homeostatic_offset", offset + 16 <= first, first - 16)
        state = s.HOMEOSTATIC_HEADER.read(self.file.data, at)
        self.file.claim(at, 16, f"homeostatic header of {self.name!r}")
        state.require("n_neurons", state.n_neurons == self.header.n_neurons, self.header.n_neurons)
        state.require("flags", state.flags == 0, 0)
        self.homeostatic_updated = state.timestamp_updated

    homeostatic_updated = None

    def check_dynamic_state(self, record, offset, first, own):
        at = self.offset + offset
        record.require("dynamic_state_offset", at % 64 == 0, "a multiple of 64")
        record.require("dynamic_state_offset", offset + 32 <= first, first - 32)
        state = s.DYNAMIC_STATE_HEADER.read(self.file.data, at)
        self.file.claim(at, 32, f"dynamic state header of {self.name!r}")
        roles = [role for _, _, role in own]
        record.require("dynamic_state_offset", roles == sorted(roles), "tensors by role")
        firsts = {}
        for place, _, role in own:
            firsts.setdefault(ROLES[role], place - 32 - self.offset)
        for role, flag, holder in (
            ("region_state", "has_region_state", state),
            ("learning_state", "has_learning_state", state),
            ("oscillator", "has_oscillators", self.extension),
            ("neuromodulator", "has_neuromodulators", self.extension),
        ):
            state.require(flag, getattr(state, flag) == (role in firsts), int(role in firsts))
            expected = firsts.get(role, 0)
            offset = getattr(holder, f"{role}_offset")
            holder.require(f"{role}_offset", offset == expected, expected)
