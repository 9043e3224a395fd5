#!/usr/bin/env bash
# A wheel of the package runs on a Debian 12 that has Python, numpy's wheel, and nothing else of what
# a build needs. Usage: bare_debian_test.sh SOURCE PYTHON, where PYTHON has pip and is of Debian 12's
# version. Exits with 77 where it cannot be tried.
set -euo pipefail
source_root=$1 python=$2

skip() {
  echo "skipped: $*"
  exit 77
}
[[ $(id -u) == 0 ]] || skip "making a bare system takes root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[[ $version == 3.11 ]] || skip "Debian 12 has Python 3.11, and $python is $version"

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
"$python" -m pip wheel --quiet --disable-pip-version-check --wheel-dir "$folder/wheels" "$source_root" ||
  skip "the wheel's build requirements could not be fetched"
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  sed -nE 's/^(deb|URIs:) +(\[[^]]*\] +)?([^ ]+).*/\3/p' | sed -n 1p || true)
debootstrap --variant=minbase --include=python3,python3-venv bookworm "$folder/debian" "$mirror" >"$folder/log" 2>&1 ||
  skip "debootstrap failed: $(tail -n 1 "$folder/log")"
cp -r "$folder/wheels" "$folder/debian/wheels"

for library in libzstd.so.1 liburing.so.2 libisal.so.2 libfmt.so.9 libsimdjson.so.14 libprotobuf-lite.so.32; do
  # zstd is dpkg's own; the others must not be there, or nothing is shown.
  [[ $library == libzstd* ]] || ! find "$folder/debian/usr/lib" -name "$library*" | grep -q . ||
    { echo "$library is in the bare system"; exit 1; }
done
chroot "$folder/debian" /usr/bin/env -i PATH=/usr/bin:/bin sh -e <<'END'
python3 -m venv /try
/try/bin/pip install --quiet --no-index --find-links /wheels thalia-checkpoint
cd /tmp
/try/bin/python3 - <<'PYTHON'
import numpy as np
import thalia_checkpoint as thalia

array = np.random.default_rng(0).normal(size=(300, 400)).astype(np.float32)
for codec in (None, "plane_entropy", "zstd", "lz4"):
    with thalia.Writer("bare.thalia", compression=codec, checksum="sha256") as writer:
        writer.add("r/w", array)
    with thalia.open("bare.thalia", verification="at_open") as file:
        assert (file["w"].numpy() == array).all()
print("a wheel of", thalia.__version__, "works on a bare Debian")
PYTHON
END
