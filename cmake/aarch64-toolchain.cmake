# Builds for aarch64 on another machine, and has qemu run what was built: slowly, and it says nothing of speed or of the
# order in which that processor's cores see each other's writes. On Debian 12:
#   apt-get install g++-aarch64-linux-gnu qemu-user-static
#   dpkg --add-architecture arm64 && apt-get update
#   mkdir -p /tmp/arm64/root && cd /tmp/arm64  # packages are unpacked there, not installed
#   for p in libc6 libgcc-s1 libstdc++6 libgomp1 lib{hwy1,hwy-dev,isal2,isal-dev,fmt9,fmt-dev,gtest-dev,png16-16,png-dev} \
#     lib{zfp1,zfp-dev,lz4-1,lz4-dev,zstd1,zstd-dev,tomlplusplus3,tomlplusplus-dev} zlib1g zlib1g-dev; do
#     apt-get download $p:arm64; done; apt-get download nlohmann-json3-dev libcli11-dev
#   for p in *.deb; do dpkg -x $p root; done
#   ln -sf ../../../lib/aarch64-linux-gnu/libz.so.1 root/usr/lib/aarch64-linux-gnu/libz.so  # was absolute
# and here:
#   cmake -B build/aarch64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-toolchain.cmake -DLACONIC_SYSROOT=/tmp/arm64/root \
#     -DLACONIC_MPI=OFF -DLACONIC_CUDA=OFF -DLACONIC_BENCH=OFF -DCMAKE_UNITY_BUILD=ON
#   cmake --build build/aarch64 && ctest --test-dir build/aarch64 -j2 --timeout 900 -E 'gpu_check|format_document|app_cli|manifest|ForkedProcess'
# What is left out is Python, which CMake would have qemu run (by hand it takes a script that runs a program by qemu), and
# a process that forks while it has threads, which qemu 7.2 does not survive.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(LACONIC_SYSROOT / CACHE PATH "Where the packages for arm64 are, apart from the compiler's")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LACONIC_SYSROOT)
set(CMAKE_FIND_ROOT_PATH "${LACONIC_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${LACONIC_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${LACONIC_SYSROOT}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L "${LACONIC_SYSROOT}")
