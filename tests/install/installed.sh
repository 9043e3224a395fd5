# Installs a build into an empty folder, which is removed at the end, and finds it through
# pkg-config. Sourced by the tests of the installed library.
# shellcheck shell=bash

# install_build BUILD_FOLDER VERSION: sets place, where everything lies that the test makes, and
# libraries and prefix, folders of the installed copy.
install_build() {
  local build=$1 version=$2 meson pc
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT

  # The Meson that configured the build: another version would refuse its records.
  # By tags: the Python module is no part of it.
  read -ra meson <<<"$(sed -n 's/^ *command = \(.*\) --internal regenerate .*/\1/p' "$build/build.ninja")"
  "${meson[@]}" install -C "$build" --no-rebuild --quiet --tags devel,runtime,man --destdir "$place" >"$place/install.log" 2>&1 || {
    cat "$place/install.log"
    exit 1
  }

  pc=$(find "$place" -name thalia.pc)
  [[ -n $pc ]] || {
    echo "no thalia.pc was installed"
    exit 1
  }
  # That of a Debian package is for one place.
  grep -q pcfiledir "$pc" || sed -i "s|^prefix=|prefix=$place|" "$pc"
  # Where it lies now, and not where the build was configured for.
  PKG_CONFIG_PATH=$(dirname "$pc")
  export PKG_CONFIG_PATH
  libraries=$(realpath "$(pkg-config --variable=libdir thalia)")
  prefix=$(realpath "$(pkg-config --variable=prefix thalia)")
  export libraries prefix
  [[ $libraries == "$(realpath "$place")"/* ]] || {
    echo "thalia.pc leads to $libraries, which is not in $place"
    exit 1
  }
  [[ $(pkg-config --modversion thalia) == "$version" ]]
}
