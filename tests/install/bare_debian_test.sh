#!/usr/bin/env bash
# What tools/release made, in a system that has what every Debian has and nothing of what a build needs: the wheel for
# its Python is installed, used and removed.
# Never skips: a release that could not be tried has not been.
# usage: bare_debian_test.sh RELEASE DIST
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"
release=$1 dist=$2

case $release in
  bookworm) python=3.11 wheel='cp311-cp311' ;;
  trixie) python=3.13 wheel='cp312-abi3' ;;
  *) die "$release: neither bookworm nor trixie" ;;
esac
wheels=("$dist"/thalia_checkpoint-*-"$wheel"-*.whl)
[[ ${#wheels[@]} == 1 && -e ${wheels[0]} ]] || die "not one wheel for $wheel in $dist: ${wheels[*]}"

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
root=$folder/debian
bare_debian "$release" "$root"
apt_in_bare_debian "$root" install python3 python3-venv
mkdir "$root/wheels"
cp "${wheels[0]}" "$root/wheels"
wheels_for "$python" "$root/wheels" --no-deps numpy

# zstd is dpkg's own, and OpenSSL may be apt's; the others must not be there, or nothing is shown. Nor a compiler.
for library in 'liburing.so.*' 'libisal.so.*' 'libfmt.so.*' 'libsimdjson.so.*' 'libprotobuf-lite.so.*' 'libthalia.so*'; do
  ! find "$root/usr/lib" -name "$library" | grep -q . || die "$library is in the bare system"
done
! find "$root/usr/bin" -name 'gcc*' -o -name 'cc' -o -name 'clang*' | grep -q . || die "a compiler is in the bare system"

cp "$source_root/tests/install/bare_use.py" "$root/use.py"
say "$release: ${wheels[0]##*/}"
# shellcheck disable=SC2016  # those of the other shell
in_bare_debian "$root" sh -ec '
  python3 -m venv /try
  /try/bin/pip install --quiet --no-index --find-links /wheels thalia-checkpoint
  cd /tmp
  /try/bin/python3 /use.py
  /try/bin/thalia version
  /try/bin/thalia verify bare.thalia
  /try/bin/python3 -m thalia_checkpoint info bare.thalia
  status=0; /try/bin/thalia info missing.thalia 2>/dev/null || status=$?
  test $status != 0
  for page in man/man1/thalia.1 bash-completion/completions/thalia zsh/site-functions/_thalia \
    fish/vendor_completions.d/thalia.fish; do
    grep -q max.*memory "/try/share/$page"
  done
  /try/bin/pip uninstall --quiet --yes thalia-checkpoint
  left=$(find /try -iname "*thalia*"); test -z "$left" || { echo "left behind: $left"; exit 1; }'
