# make quickstart   set up and run the first comparison on built-in data
# make test         set up and run every test, as many at a time as there are cores (JOBS=1: one by one)
# make build        leaves the program at build/syncopate
# make bench        the training step beside PyTorch's, in ten minutes
# make web          the page of the reports anew from web/, with npm: only needed after a change there
# Against another libtorch: make TORCH=2.13.0 test, which builds in build-torch-2.13.0.

TORCH ?= debian
BUILD ?= $(if $(filter debian,$(TORCH)),build,build-torch-$(TORCH))
JOBS ?= $(shell nproc)

.PHONY: quickstart test build all packages packages-for-tests bench web format lint clean

all: build

packages packages-for-tests:
	@tools/install_packages.sh $(TORCH) $(if $(filter packages-for-tests,$@),tests)

$(BUILD)/.configured: CMakeLists.txt cmake/*.cmake | packages
	@tools/configure.sh $(BUILD) $(TORCH)
	@touch $@

# Warnings are errors where the code is tested. A folder that was built without this is compiled again.
$(BUILD)/.strict: $(BUILD)/.configured
	@cmake -S . -B $(BUILD) -DSYNCOPATE_WERROR=ON > /dev/null
	@touch $@

build: packages $(BUILD)/.configured
	@cmake --build $(BUILD) --parallel $(JOBS) --target syncopate-program

quickstart: build
	@$(BUILD)/syncopate compare experiments/quickstart.toml

test: packages-for-tests $(BUILD)/.strict
	@cmake --build $(BUILD) --parallel $(JOBS)
	@rm -rf $(BUILD)/Testing/cases
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS); code=$$?; \
	  tools/slowest_tests.py $(BUILD)/Testing/cases; exit $$code

bench: packages $(BUILD)/.configured
	@cmake -S . -B $(BUILD) -DSYNCOPATE_BENCH=ON > /dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) --target bench_step
	@bench/step_against_peer.py --build $(BUILD)

web:
	@cd web && npm ci --no-fund --no-audit && npm run check && npm run build

format:
	@clang-format -i $$(git ls-files '*.h' '*.cpp' '*.inc')

lint: $(BUILD)/.configured
	@clang-tidy -p $(BUILD) $$(git ls-files 'syncopate/*.cpp')

clean:
	@rm -rf $(BUILD)
