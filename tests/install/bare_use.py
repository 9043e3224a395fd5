"""What an installed package does at least: saves with each kind of codec, and reads it back, verified."""

import numpy as np
import thalia_checkpoint as thalia

array = np.random.default_rng(0).normal(size=(300, 400)).astype(np.float32)
for codec in (None, "plane_entropy", "zstd", "lz4"):
    with thalia.Writer("bare.thalia", compression=codec, checksum="sha256") as writer:
        writer.add("r/w", array)
    with thalia.open("bare.thalia", verification="at_open") as file:
        assert (file["w"].numpy() == array).all()
print("saved and read with thalia_checkpoint", thalia.__version__)
