#!/usr/bin/env bash
# Installs the build into an empty folder, so not where it was configured for; there, CMake finds it
# by its package, and builds and runs a consumer in C and one in C++. And a project in C alone. Each
# has the lines for CMake of a page, too.
# usage: cmake_test.sh BUILD_FOLDER PROJECT_FOLDER VERSION C_COMPILER CPP_COMPILER FLAGS LINK_FLAGS,
# the last four with spaces between their words.
set -euo pipefail
# shellcheck source=tests/install/installed.sh
. "$(dirname "$0")/installed.sh"

build=$1 project=$2 version=$3
export CC=$4 CXX=$5 CFLAGS=$6 CXXFLAGS=$6 LDFLAGS=$7
unset LD_LIBRARY_PATH

cmake=/usr/bin/cmake  # Debian's: another one earlier in the path may need what is not there
[[ -x $cmake ]] || cmake=$(command -v cmake) || {
  echo 'skipped: cmake is not installed'
  exit 77
}
install_build "$build" "$version"

# in_cmake PAGE LANGUAGES PROGRAM…: the programs run from where they were built, with the path to the
# library that CMake gave them.
in_cmake() {
  local page=$project/../../docs/use/$1 languages=$2 folder program
  folder=$place/${languages//;/_}
  shift 2
  # shellcheck disable=SC2016  # backticks of the page
  sed -n '/^```cmake$/,/^```$/{/^```/d;p}' "$page" >"$folder.cmake"
  grep -q 'target_link_libraries(trainer ' "$folder.cmake"
  if ! {
    "$cmake" -G Ninja -S "$project" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" \
      -DLANGUAGES="$languages" -DVERSION="$version" -DLINES="$folder.cmake" &&
      "$cmake" --build "$folder"
  } >"$folder.log" 2>&1; then
    cat "$folder.log"
    exit 1
  fi
  for program in "$@"; do
    "$folder/$program" "$place/$program.thalia"
  done
}

in_cmake cpp.md 'C;CXX' in_c in_cpp trainer
in_cmake c.md C in_c trainer
