#!/usr/bin/env bash
# A build without its libraries ends at once, with one line that names their packages, and fetches
# nothing. usage: missing_test.sh SOURCE BUILD_FOLDER C_COMPILER CPP_COMPILER
set -euo pipefail

source=$1 build=$2
export CC=$3 CXX=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
read -ra meson <<<"$(sed -n 's/^ *command = \(.*\) --internal regenerate .*/\1/p' "$build/build.ninja")"

# All that pkg-config finds but liburing, which comes with no CMake package that would be found instead.
mkdir "$place/pc"
IFS=: read -ra folders <<<"$(pkg-config --variable=pc_path pkg-config)"
for folder in "${folders[@]}"; do
  for file in "$folder"/*.pc; do
    [[ ! -e $file || $file == */liburing.pc ]] || ln -sf "$file" "$place/pc/"
  done
done
if PKG_CONFIG_LIBDIR=$place/pc "${meson[@]}" setup "$place/build" "$source" -Dtests=disabled </dev/null >"$place/log" 2>&1; then
  echo 'a build without liburing was configured'
  exit 1
fi
grep -F 'ERROR' "$place/log"
[[ $(grep -c 'ERROR' "$place/log") == 1 ]]
grep -qF 'ERROR: Problem encountered: missing, or too old: please run "apt-get install liburing-dev"' "$place/log"
! grep -iE 'download|fetch(ing|ed)' <(grep -vF 'fetches the sources instead' "$place/log")
