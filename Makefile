# The few words that a newcomer needs; everything else is cmake --preset and the scripts in tools/.
.PHONY: help setup build demo test test-suites bench format tidy clean
.NOTPARALLEL:

help:
	@echo 'make demo    real images summed over four ranks, plain MPI beside Laconic, with pictures in out/'
	@echo 'make test    everything that must hold: builds, suites, sanitizers, format, clang-tidy, short fuzzing'
	@echo 'make test-suites   suites of other projects, alone and under the drop-in library: what passes alone must pass so'
	@echo 'make bench   codecs beside zfp, lz4, zstd and memcpy; errors beside theory; stacking and all collectives at 1 and 2.5 Gb/s;'
	@echo '             plots in out/bench'
	@echo 'make build   the release build in build/release'
	@echo 'make setup   packages (as root) and .venv; the others do it by themselves'
	@echo 'make format | tidy | clean'

setup:
	@tools/setup

build: setup
	@cmake --preset release
	@cmake --build --preset release

demo: build
	@tools/demo

bench: build
	@tools/bench

test:
	@tools/test

test-suites: build
	@tools/suites

format: setup
	@tools/format

tidy: setup
	@tools/tidy

clean:
	rm -rf build out
