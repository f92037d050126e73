# Language level, warnings, floating-point rules and sanitizers of every target in the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

# The encoder promises a bound by computing exactly what the decoder will compute: no fused multiply-add anywhere.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>
                    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false$<SEMICOLON>-Xcompiler=-ffp-contract=off>)
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wall$<SEMICOLON>-Wextra$<SEMICOLON>-Wshadow$<SEMICOLON>-Wcast-qual$<SEMICOLON>-Werror>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings$<SEMICOLON>-Xcompiler=-Wall,-Wextra>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wno-restrict>)  # gcc 12 sees overlapping copies in std::string's own + (GCC bug 105651)
else()
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wno-pass-failed>)  # a loop that a sanitizer keeps from being unrolled is no mistake
endif()

if(LACONIC_SANITIZE)
  add_compile_options(-fsanitize=${LACONIC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LACONIC_SANITIZE})
endif()

if(LACONIC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "LACONIC_FUZZ=ON needs clang: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# For what is fuzzed: the fuzzer sees which of its branches it reached. Elsewhere that only takes time, a fifth of compiling.
function(laconic_fuzzed target)
  if(LACONIC_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Stricter still for the library itself; tests and tools are spared the casts.
function(laconic_strict target)
  target_compile_options(${target} PRIVATE -Wconversion -Wno-sign-conversion)
endfunction()

# For what surrounds the library: under sanitizers it shall compile fast rather than run fast.
function(laconic_quick target)
  if(LACONIC_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# Precompiles headers for a target, where LACONIC_PCH asks for it. Sources with flags of their own cannot take part.
function(laconic_precompile target)
  if(LACONIC_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

find_package(Threads REQUIRED)

# Whether this machine is known to lack AVX-512: an x86-64 one under Linux that says so.
set(LACONIC_NO_AVX512 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64" AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo has_avx512 REGEX "^flags.* avx512f" LIMIT_COUNT 1)
  if(NOT has_avx512)
    set(LACONIC_NO_AVX512 ON)
  endif()
endif()
