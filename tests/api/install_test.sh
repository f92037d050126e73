#!/usr/bin/env bash
# What a user does: installs, compiles a C and a C++ program with what pkg-config says, runs them, and the command.
#   install_test.sh BUILD SOURCES FLAVOUR MPICC MPIEXEC...
set -euo pipefail
build=$1 sources=$2 flavour=$3 mpicc=$4
shift 4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
manifest=$build/install_manifest.txt  # of what somebody may have installed in earnest
[[ ! -e $manifest ]] || cp "$manifest" "$place/manifest"
cmake --install "$build" --prefix "$place/first" >"$place/log"
rm -f "$manifest"
[[ ! -e $place/manifest ]] || cp "$place/manifest" "$manifest"
mv "$place/first" "$place/moved"  # nothing may remember where it was installed
export PKG_CONFIG_PATH="$place/moved/lib/pkgconfig" LD_LIBRARY_PATH="$place/moved/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
read -ra flags < <(pkg-config --cflags --libs "laconic-$flavour")
"$mpicc" -Wall -Wextra -Werror "$sources/examples/stack.c" -o "$place/stack" "${flags[@]}" -lm
"$@" -n 2 "$place/stack" "$sources/data/wave_computed_marmousi_rtm_shots_12x200x400.f32" 80000 1e-3rel
cat >"$place/sum.cc" <<'EOF'
#include <laconic/laconic.hpp>
#include <laconic/laconic_mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    laconic_comm* raw = nullptr;
    laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
    laconic::Comm comm(raw, {.bound = "1e-3"});
    std::vector<float> x(100000, 1.0F);
    comm.allreduce<float>(x, laconic::Op::sum);
    if (comm.rank() == 0) std::printf("sum %.3f\n", static_cast<double>(x[4711]));
  }
  MPI_Finalize();
}
EOF
"$mpicc" -x c++ -std=c++20 -DOMPI_SKIP_MPICXX "$place/sum.cc" -x none -o "$place/sum" "${flags[@]}" -lstdc++
"$@" -n 3 "$place/sum"
"$place/moved/bin/laconic" doctor >"$place/doctor"
"$place/moved/bin/laconic" compress "$place/moved/share/laconic/data/"wave_computed_marmousi_rtm_shots_12x200x400.f32 --bound 1e-3rel -o "$place/shots.lcz" >/dev/null
library=$place/moved/lib/liblaconic-$flavour.so
if readelf -d "$library" | grep -E 'RPATH|RUNPATH'; then exit 1; fi
nm -D --defined-only "$library" | awk '{ print $3 }' >"$place/symbols"
grep -qx laconic_allreduce "$place/symbols"
echo "installed; symbols that are not the interface's: $(grep -vc '^laconic_' "$place/symbols" || true)"
