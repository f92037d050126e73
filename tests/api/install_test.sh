#!/usr/bin/env bash
# What a user does: installs, compiles a C and a C++ program with what pkg-config says, runs them, and the command.
#   install_test.sh BUILD SOURCES FLAVOUR MPICC MPIEXEC...
set -euo pipefail
build=$1 sources=$2 flavour=$3 mpicc=$4
shift 4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
source "$(dirname "$0")/installed_tree.sh"
install_and_move "$build" "$place"
export PKG_CONFIG_PATH="$place/moved/lib/pkgconfig" LD_LIBRARY_PATH="$place/moved/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fields=$sources/data/wave_computed_marmousi_rtm_shots_12x200x400.f32
read -ra flags < <(pkg-config --cflags --libs "laconic-$flavour")
"$mpicc" -Wall -Wextra -Werror "$sources/examples/stack.c" -o "$place/stack" "${flags[@]}" -lm
"$@" -n 2 "$place/stack" "$fields" 80000 1e-3rel
"$mpicc" -x c++ -std=c++20 "$sources/tests/api/consumer/sum.cc" -x none -o "$place/sum" "${flags[@]}" -lstdc++
"$@" -n 3 "$place/sum"
"$place/moved/bin/laconic" doctor >"$place/doctor"
"$place/moved/bin/laconic" compress "$place/moved/share/laconic/data/"wave_computed_marmousi_rtm_shots_12x200x400.f32 --bound 1e-3rel -o "$place/shots.lcz" >/dev/null
library=$place/moved/lib/liblaconic-$flavour.so
# Whose MPI is the program's, wherever that is.
dropins=("$place/moved/lib/laconic/"*/liblaconic-mpi.so)
if readelf -d "$library" "${dropins[@]}" "$place/moved/bin/"* | grep -E 'RPATH|RUNPATH'; then exit 1; fi
served() {  # PROGRAM ARGUMENTS...: by the drop-in library
  "$place/moved/bin/laconic" run --bound 1e-3rel --mode compressed -- "${launch[@]}" -n 2 "$@" >"$place/served" 2>&1 &&
    grep -q "laconic: 2 ranks, bound 0.001rel" "$place/served" || { cat "$place/served"; exit 1; }
}
launch=("$@")
for wrapper in "$mpicc" "${mpicc}_abi"; do
  [[ -x $wrapper ]] || continue
  "$wrapper" "$sources/examples/dropin/stack.c" -o "$place/dropin" -lm
  served "$place/dropin" "$fields" 80000 2 1
done
python=$(dirname "$mpicc")/python  # whose MPI the launcher's is
[[ ! -x $python || $mpicc != "$sources"/* ]] || served "$python" "$sources/examples/dropin/kmeans.py" "$fields" 2000 12 5
"$@" -n 2 "$place/moved/bin/laconic" -q stack --set rtm --size 1 --repetitions 1
"$place/moved/libexec/laconic/cluster" --help >"$place/cluster"
grep -q 'cluster with HOSTS' "$place/cluster"
nm -D --defined-only "$library" | awk '{ print $3 }' >"$place/symbols"
grep -qx laconic_allreduce "$place/symbols"
echo "installed; symbols that are not the interface's: $(grep -vc '^laconic_' "$place/symbols" || true)"
