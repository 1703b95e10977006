# A thin front of the CMake presets; CMakeLists.txt is the truth.
PRESET ?= dev
BUILD := build/$(PRESET)

.PHONY: all setup build test versions versions-nccl suite fuzz torture soak clean-runs scenarios demo bench docs check sanitize clean help
all: build

help:
	@echo "make            build into build/dev (PRESET=release, asan, tsan: into build/PRESET)"
	@echo "make setup      install the Debian packages (and, without a CUDA toolkit, the pip packages) that the build needs"
	@echo "make demo       install what the demo needs, build it, and see ddpcheck diagnose a hanging training job"
	@echo "make test       build and run every test"
	@echo "make versions   ask pip which releases of PyTorch and NCCL are newer than those that were tested"
	@echo "make versions-nccl   build with the nccl.h of each release of NCCL, and run (RELEASES=2.32.3: of one)"
	@echo "make suite      run the faulty programs and their twins of tests/suite, print precision and recall"
	@echo "make scenarios  the trainer's 33 scenarios: the fault without ddpcheck and with it, and the correct twin"
	@echo "make fuzz       random legal programs, which must give no finding, and the same with a fault each; hostile input (SEEDS=1-100)"
	@echo "make torture    20 minutes of kills, limits and damaged files; writes docs/reliability.md (SECONDS=1200)"
	@echo "make soak       an hour of a job's records, 10,000 a second, as fast as they are taken, with --keep 1G (RECORDS=36000000)"
	@echo "make clean-runs an hour of the trainer in all modes without a fault: nothing may be reported as slow (MINUTES=60)"
	@echo "make sanitize   build and test with ASan and UBSan together, and with TSan"
	@echo "make bench      measure what the shim, the store and the analyzer cost"
	@echo "make docs       regenerate docs/findings from the texts of ddpcheck explain"

setup:
	@tools/setup

build/%/build.ninja:
	@cmake --preset $* >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }
	@grep '^-- Not built' build/$*.log || true

build: | build/
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@cmake --build --preset $(PRESET)

build/:
	@mkdir -p build

test: build
	@tools/test $(PRESET)

versions:
	@python3 tests/versions/versions.py --new

RELEASES ?= all
versions-nccl: build
	@python3 tests/versions/nccl.py $(BUILD) $(RELEASES)

SEEDS ?= 1-100
scenarios: build
	@python3 tests/e2e/table.py $(BUILD)

fuzz: build
	@$(BUILD)/tests/fuzz/fuzz_readers $(SEEDS)
	@$(BUILD)/tests/fuzz/fuzz_ring $(SEEDS)
	@python3 tests/fuzz/fuzz.py --build $(BUILD) --seeds $(SEEDS)

SECONDS ?= 1200
torture: build
	@python3 tests/torture/torture.py $(BUILD) $(BUILD)/lib/ddpcheck/emu --seconds $(SECONDS) --page docs/reliability.md

soak: RECORDS = 36000000
soak: build
	@python3 tests/collector/test_soak.py $(BUILD) --records $(RECORDS) --keep 1G

MINUTES ?= 60
clean-runs: build
	@python3 bench/clean_runs.py $(BUILD) --minutes $(MINUTES)

suite: build
	@python3 tests/suite/run.py --build $(BUILD)

demo: | build/
	@tools/setup --demo
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@cmake --build --preset $(PRESET) --target demo_programs
	@tools/demo $(BUILD)

# The scenarios and the pages' commands run once, in `make test`; the other tests of the whole line run here, too.
sanitize: sanitize-asan sanitize-tsan
# The analyzer is one thread: TSan has nothing to see there.
sanitize-tsan: ONE_THREAD = -E "^test_analyzer_"
sanitize-%:
	@$(MAKE) --no-print-directory build PRESET=$*
	@tools/test $* -LE "scenario|docs" $(ONE_THREAD)

bench docs: build
	@cmake --build --preset $(PRESET) --target $@

clean:
	rm -rf build
