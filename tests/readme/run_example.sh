#!/bin/sh
# run_example.sh PROGRAM: in an empty folder, which is removed afterwards.
set -eu
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$program"
