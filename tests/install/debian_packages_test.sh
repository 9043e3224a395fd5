#!/usr/bin/env bash
# The Debian packages that tools/release made, in a Debian 13 that has what every Debian has and nothing of what a build
# needs: they are installed, used and purged.
# Never skips: a release that could not be tried has not been.
# usage: debian_packages_test.sh DIST
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"
dist=$1
names=(libthalia0 libthalia-dev thalia python3-thalia-checkpoint)

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
root=$folder/debian
bare_debian trixie "$root"
mkdir "$root/packages"
for name in "${names[@]}"; do
  files=("$dist/debian/${name}"_*.deb)
  [[ ${#files[@]} == 1 && -e ${files[0]} ]] || die "not one package $name in $dist/debian: ${files[*]}"
  cp "${files[0]}" "$root/packages/$name.deb"
done
cp "$source_root"/tests/install/{bare_use.py,consumer.c,consumer.cc} "$root/packages"
# All files but those of apt and dpkg, and what they log.
all_files() { (cd "$root" && find . -xdev \( -path ./var/cache -o -path ./var/lib -o -path ./var/log -o -path ./tmp \) -prune -o -print | sort); }

say "trixie: the program and the Python package"
apt_in_bare_debian "$root" install /packages/{libthalia0,thalia,python3-thalia-checkpoint}.deb
! find "$root/usr/bin" -name 'gcc*' -o -name 'cc' -o -name 'clang*' | grep -q . || die "a compiler is in the bare system"
# shellcheck disable=SC2016  # those of the other shell
in_bare_debian "$root" sh -ec '
  cd /tmp
  python3 /packages/bare_use.py
  thalia version
  thalia info bare.thalia
  thalia verify bare.thalia
  python3 -m thalia_checkpoint info bare.thalia
  status=0; thalia info missing.thalia 2>/dev/null || status=$?
  test $status != 0
  zgrep -q "max.*memory" /usr/share/man/man1/thalia.1.gz
  for page in bash-completion/completions/thalia zsh/vendor-completions/_thalia fish/vendor_completions.d/thalia.fish; do
    grep -q "max.*memory" "/usr/share/$page"
  done'

say "trixie: a program in C and one in C++"
apt_in_bare_debian "$root" install gcc g++ pkgconf
before=$(all_files | grep -v __pycache__)
apt_in_bare_debian "$root" install /packages/libthalia-dev.deb
# shellcheck disable=SC2016
in_bare_debian "$root" sh -ec '
  cd /tmp
  gcc -Wall -Wextra -Werror /packages/consumer.c $(pkg-config --cflags --libs thalia) -o in_c
  g++ -std=c++20 -Wall -Wextra -Werror /packages/consumer.cc $(pkg-config --cflags --libs thalia) -o in_cpp
  ./in_c in_c.thalia
  ./in_cpp in_cpp.thalia
  thalia verify in_c.thalia
  thalia verify in_cpp.thalia'

say "trixie: removed"
apt_in_bare_debian "$root" purge libthalia-dev
after=$(all_files | grep -v __pycache__)
[[ $before == "$after" ]] || {
  diff <(echo "$before") <(echo "$after") || true
  die "removing libthalia-dev leaves another system than before"
}
apt_in_bare_debian "$root" purge libthalia0 thalia python3-thalia-checkpoint
rm -rf "$root"/{packages,tmp}
left=$(find "$root" -xdev -iname '*thalia*')
[[ -z $left ]] || die "left behind: $left"
in_bare_debian "$root" dpkg --audit
