#!/usr/bin/env bash
# Installs the build into an empty folder, builds consumer.cc against that copy through pkg-config,
# runs it, and runs the installed program.
# usage: install_test.sh BUILD_FOLDER CONSUMER VERSION COMPILER…
set -euo pipefail

build=$1 consumer=$2 version=$3
shift 3
compiler=("$@")

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# The Meson that configured the build: another version would refuse its records.
read -ra meson <<<"$(sed -n 's/^ *command = \(.*\) --internal regenerate .*/\1/p' "$build/build.ninja")"
"${meson[@]}" install -C "$build" --no-rebuild --quiet --destdir "$place" >"$place/install.log" 2>&1 || {
  cat "$place/install.log"
  exit 1
}

pc=$(find "$place" -name thalia.pc)
[[ -n $pc ]] || {
  echo "no thalia.pc was installed"
  exit 1
}
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=$place
libraries=$place$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir thalia)

[[ $(pkg-config --modversion thalia) == "$version" ]]
read -ra flags <<<"$(pkg-config --cflags --libs thalia)"
"${compiler[@]}" -std=c++20 -Wall -Wextra -Werror "$consumer" "${flags[@]}" -o "$place/consumer"
LD_LIBRARY_PATH=$libraries "$place/consumer" "$place/consumer.thalia"

program=$(find "$place" -path '*/bin/thalia')
if [[ -n $program ]]; then
  printed=$(LD_LIBRARY_PATH=$libraries "$program" version)
  echo "$printed"
  [[ $printed == *"$version"* ]]
  LD_LIBRARY_PATH=$libraries "$program" verify "$place/consumer.thalia"
fi
