"""Makes programs of kernels: PTX by nvcc, C++ of that by a Translator, and both compiled with a harness."""

import os
import shutil
import subprocess
import sys

import translate

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def coded(kind, elements, integer):
    """The kernels for these elements, which compute with such integers."""
    return f"kernels_{kind}.cu", "codec_harness.cc", [f"-DPTX_DTYPE={elements}", f"-DPTX_INTEGER={integer}"]


# Kind of kernel: its source, what runs it, and with which definitions.
KINDS = {
    "f32": coded("f32", "f32", "std::int32_t"),
    "f16": coded("f16", "f16", "std::int32_t"),
    "bf16": coded("bf16", "bf16", "std::int32_t"),
    "f64": coded("f64", "f64", "std::int32_t"),
    "f64_wide": coded("f64_wide", "f64", "std::int64_t"),
    "frame": ("codec.cu", "frame_harness.cc", []),
    "survey": ("survey.cu", "survey_harness.cc", []),
}
# What decides the code: as cmake/LaconicCompiler.cmake, cmake/LaconicCuda.cmake and src/gpu/CMakeLists.txt have it.
NVCC_FLAGS = ["-O3", "-DNDEBUG", "-std=c++20", "-fmad=false", "-Xcompiler=-ffp-contract=off", "--expt-relaxed-constexpr", "-arch=compute_80"]
INCLUDES = ["-I" + os.path.join(ROOT, folder) for folder in ("tools/ptx", "src", "tests")]
CXX_FLAGS = ["-std=c++20", "-w", "-ffp-contract=off", *INCLUDES]  # -w: translated code is not for reading
LIBRARIES = ["-lisal", "-lzfp", "-llz4", "-lzstd", "-lhwy", "-lpthread", "-ldl"]


def run(command, **options):
    return subprocess.run(command, check=True, **options)


def find_nvcc():
    """As CMake finds it."""
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        sys.exit("no nvcc: install CUDA's toolkit, or set CUDACXX")
    return nvcc


def build_core(folder):
    """The codec to compare with."""
    if not os.path.exists(os.path.join(folder, "CMakeCache.txt")):
        sys.exit(f"{folder} is no build: cmake --preset release, or name one with --build")
    run(["cmake", "--build", folder, "--target", "laconic_core"], stdout=subprocess.DEVNULL)
    return os.path.join(folder, "src", "liblaconic_core.a")


def build(kind, nvcc, core, scratch, translator, harness=None, nvcc_flags=(), cxx_flags=()):
    """Gives the program's path and the PTX. harness: not the kind's own."""
    source, runner, defines = KINDS[kind]
    ptx, kernels, compiled, program = (os.path.join(scratch, kind + suffix) for suffix in (".ptx", ".cc", ".o", ""))
    run([nvcc, *NVCC_FLAGS, *nvcc_flags, "-I" + os.path.join(ROOT, "src"), "--ptx", os.path.join(ROOT, "src", "gpu", source), "-o", ptx])
    with open(ptx, encoding="utf-8") as f:
        text = f.read()
    with open(kernels, "w", encoding="utf-8") as f:
        f.write(translate.translate(text, translator))
    cxx = os.environ.get("CXX", "g++")
    # Tens of thousands of lines in few functions: optimising them takes longer than running them as they are.
    run([cxx, "-O0", *CXX_FLAGS, *cxx_flags, "-c", kernels, "-o", compiled])
    runner = os.path.join(ROOT, "tools", "ptx", harness or runner)
    run([cxx, "-O1", *CXX_FLAGS, *defines, runner, compiled, "-o", program, core, *LIBRARIES])
    return program, ptx
