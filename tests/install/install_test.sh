#!/usr/bin/env bash
# Installs the build into an empty folder, builds consumer.cc against that copy through pkg-config,
# runs it, and runs the installed program.
# usage: install_test.sh BUILD_FOLDER CONSUMER VERSION COMPILER…
set -euo pipefail
# shellcheck source=tests/install/installed.sh
. "$(dirname "$0")/installed.sh"

build=$1 consumer=$2 version=$3
shift 3
compiler=("$@")
install_build "$build" "$version"

read -ra flags <<<"$(pkg-config --cflags --libs thalia)"
"${compiler[@]}" -std=c++20 -Wall -Wextra -Werror "$consumer" "${flags[@]}" -o "$place/consumer"
LD_LIBRARY_PATH=$libraries "$place/consumer" "$place/consumer.thalia"

program=$(find "$place" -path '*/bin/thalia')
if [[ -n $program ]]; then
  printed=$(LD_LIBRARY_PATH=$libraries "$program" version)
  echo "$printed"
  [[ $printed == *"$version"* ]]
  LD_LIBRARY_PATH=$libraries "$program" verify "$place/consumer.thalia"
  # Each made by the build, in the folder where its reader looks.
  for page in man/man1/thalia.1 bash-completion/completions/thalia zsh/site-functions/_thalia \
    fish/vendor_completions.d/thalia.fish; do
    grep -q -e 'max-memory' -e 'max\\-memory' "$prefix/share/$page"
  done
fi
