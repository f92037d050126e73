#!/usr/bin/env bash
# What a user with CMake does: finds the installed package, builds a C++ program with it and runs that.
#   package_test.sh BUILD SOURCES FLAVOUR "CMAKE OPTIONS..." LAUNCHER...
set -euo pipefail
build=$1 sources=$2 flavour=$3
read -ra options <<<"$4"
shift 4
mkdir -p "$build/tests/api"
place=$(mktemp -d "$build/tests/api/package.XXXXXX")
trap 'rm -rf "$place"' EXIT
source "$(dirname "$0")/installed_tree.sh"
install_and_move "$build" "$place"
if grep -rn -e "$build" -e "$sources" -e "$place/first" "$place/moved/lib/cmake"; then exit 1; fi
cmake -S "$sources/tests/api/consumer" -B "$place/consumer" -DCMAKE_PREFIX_PATH="$place/moved" -DFLAVOUR="$flavour" "${options[@]}" >"$place/configured"
cmake --build "$place/consumer" >"$place/built" || { cat "$place/built"; exit 1; }
"$@" "$place/consumer/consumer"
