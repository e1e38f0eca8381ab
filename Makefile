# The two-command front of ward: `make run` shows it at work, `make test` proves it. Meson does the building.
#
#   make                    build into build/
#   make ward               only the programs that an ordinary run needs
#   make unit T=NAME        one unit test (tests/unit/NAME.c)
#   make check T=PATTERN    the run and escape tests that match, as root and as a user
#   make format             clang-format on the C files that have changed
#   make run                install what is missing, build, run the sample agent in a sandbox
#   make test               install what is missing, build, pass every test [ONLY=PATTERN: some of them;
#                           FULL=1: those with sanitizers as root and as a user; TURN=N: see CONTRIBUTING]
#   make install PREFIX=DIR a relocatable tree, no root needed
#   make package            a tarball and Debian packages in build-package/ | test-package: try them
#   make bench | bench-net | bench-inspect | bench-review | bench-audit | bench-wasm | bench-gvisor | bench-vm | fuzz [SECONDS=600] | fuzz-git [SECONDS=600] | lint | tsan | test-vm | test-vm-kvm | test-gvisor-kvm | test-programs | test-engines | test-fresh | test-projects | soak [RUNS=2000 CYCLES=500] | fault [POINTS=100] | deps | clean

BUILD      := build
BUILD_ASAN := build-asan
BUILD_FUZZ := build-fuzz
BUILD_TSAN := build-tsan
PREFIX     ?= /usr/local
SECONDS    ?= 600
MESON      := meson
export WARD_BUILD := $(CURDIR)/$(BUILD)

.DEFAULT_GOAL := all
.PHONY: all ward unit check format asan fuzzers deps run test install bench bench-net bench-inspect bench-review bench-audit bench-wasm bench-gvisor bench-vm fuzz fuzz-git lint tsan test-vm test-vm-kvm test-gvisor-kvm test-programs test-engines test-fresh test-projects package test-package soak fault clean help

all:
	@tools/deps.sh check build
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix=/
	@ninja -C $(BUILD)

# What `ward run` starts with the native engine, and what reads its journal.
PROGRAMS := src/cli/ward src/cli/ward-audit src/cli/ward-explain src/guest/ward-init \
	src/gateway/ward-gateway src/inspect/ward-gateway-tls src/creds/ward-secrets src/ssh/ward-ssh-agent src/ssh/ward-gpg \
	src/creds/ward-secret-http src/git/ward-git src/hook/ward-webhook
# and what is built where its libraries are
OPTIONAL := src/daemon/wardd src/daemon/wardd-tls src/envd/ward-envd

ward:
	@tools/deps.sh check build
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix=/
	@ninja -C $(BUILD) $(PROGRAMS) $(shell test -f /usr/include/sqlite3.h && echo $(OPTIONAL))

# meson builds what the test needs, and only that.
unit:
	@test -n "$(T)" || { echo "make unit T=NAME; the names: meson test -C $(BUILD) --list" >&2; exit 2; }
	@tools/deps.sh check build
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix=/
	@$(MESON) test -C $(BUILD) --print-errorlogs $(subst _,-,$(T))

check: all
	@test -n "$(T)" || { echo "make check T=PATTERN; the names: tests/run-tests --list" >&2; exit 2; }
	@tests/run-tests --build $(CURDIR)/$(BUILD) $(foreach pattern,$(T),--only '$(pattern)')

format:
	@tools/deps.sh check format
	@tools/check_style.py --format

# -O1 and short debug information take half the time to compile, and every report has its lines all
# the same; warnings are the other build's task.
asan:
	@tools/deps.sh check build
	@test -f $(BUILD_ASAN)/build.ninja || $(MESON) setup $(BUILD_ASAN) --prefix=/ \
		-Db_sanitize=address,undefined -Db_lundef=false -Dstatic=false -Doptimization=1 -Dc_args='-g1 -w'
	@ninja -C $(BUILD_ASAN)

fuzzers:
	@tools/deps.sh check fuzz
	@test -f $(BUILD_FUZZ)/build.ninja || CC=clang $(MESON) setup $(BUILD_FUZZ) --prefix=/ \
		-Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Dstatic=false
	@ninja -C $(BUILD_FUZZ)

deps:
	@tools/deps.sh install build test
	@tools/deps.sh install start || true
	@tools/deps.sh install waf || true
	@tools/deps.sh install serve || true
	@tools/gvisor.sh || true

run:
	@tools/deps.sh install build -- start || { [ $$? = 3 ] && tools/deps.sh check build 2>/dev/null; }
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix=/
	@ninja -C $(BUILD) $(RUN_PROGRAMS)
	@examples/run.sh

# Where nobody may install (exit status 3), what the build needs must be there, and the tests go on without the rest.
test:
	@tools/deps.sh install build test -- start waf serve wasm vm format || \
		{ [ $$? = 3 ] && tools/deps.sh check build 2>/dev/null; }
	@tools/gvisor.sh || true
	@$(MAKE) --no-print-directory all $(if $(ONLY),,asan)
	@tools/wasm_tree.sh $(BUILD)/wasm-tree || true
	@ONLY="$(ONLY)" FULL="$(FULL)" TURN="$(TURN)" tools/test.sh $(BUILD) $(BUILD_ASAN)

# What the sample needs, and no more.
RUN_PROGRAMS := src/cli/ward src/git/ward-git

PACKAGES := build-package
package:
	@tools/deps.sh install build package
	@tools/package.sh $(PACKAGES)
	@lintian --fail-on error,warning $(PACKAGES)/*.deb

test-package: package
	@tools/deps.sh install fresh
	@tests/package $(PACKAGES)

test-fresh:
	@tools/deps.sh install fresh || true
	@tests/fresh

test-projects:
	@tools/deps.sh install build test projects
	@$(MAKE) --no-print-directory ward
	@tests/projects --build $(BUILD) --doc

install: all
	@$(MESON) configure $(BUILD) -Dprefix=/ >/dev/null && ninja -C $(BUILD) >/dev/null
	@DESTDIR=$(abspath $(PREFIX)) $(MESON) install -C $(BUILD) --no-rebuild --quiet
	@echo "ward is installed below $(abspath $(PREFIX)); try: $(abspath $(PREFIX))/bin/ward doctor"

bench:
	@tools/deps.sh install build bench
	@tools/deps.sh install start || true
	@$(MAKE) --no-print-directory all
	@bench/run.py
	@$(MAKE) --no-print-directory bench-net

bench-net:
	@tools/deps.sh install build
	@tools/deps.sh install peers || true
	@bench/get_srt.sh || true
	@$(MAKE) --no-print-directory all
	@bench/net.py

bench-inspect:
	@tools/deps.sh install build test
	@tools/deps.sh install relays || true
	@$(MAKE) --no-print-directory all
	@bench/inspection.py --doc

bench-audit:
	@tools/deps.sh install build
	@$(MAKE) --no-print-directory all
	@bench/audit.py

bench-gvisor:
	@tools/deps.sh install build
	@tools/gvisor.sh
	@$(MAKE) --no-print-directory all
	@bench/gvisor.py --doc

bench-vm:
	@tools/deps.sh install build vm
	@$(MAKE) --no-print-directory all
	@bench/vm.py --doc

bench-wasm:
	@tools/deps.sh install build wasm
	@$(MAKE) --no-print-directory all
	@tools/wasm_tree.sh $(BUILD)/wasm-tree
	@bench/wasm.py --doc

bench-review:
	@tools/deps.sh install build
	@$(MAKE) --no-print-directory all
	@bench/review.py

fuzz:
	@tools/deps.sh install build fuzz -- oracle
	@$(MAKE) --no-print-directory fuzzers
	@tools/fuzz.sh $(BUILD_FUZZ) $(SECONDS)

fuzz-git:
	@tools/deps.sh install build test
	@$(MAKE) --no-print-directory all
	@tests/fuzz-git --build $(CURDIR)/$(BUILD) --seconds $(or $(SECONDS),600)

lint:
	@tools/deps.sh install build lint
	@$(MAKE) --no-print-directory all
	@tools/lint.sh $(BUILD)

tsan:
	@tools/deps.sh install build
	@$(MAKE) --no-print-directory all
	@tools/tsan.sh $(BUILD) $(BUILD_TSAN)

test-vm-kvm:
	@tools/deps.sh install build vm
	@$(MAKE) --no-print-directory all
	@tests/vm/kvm.py

test-gvisor-kvm:
	@tools/deps.sh install build vm
	@tools/gvisor.sh
	@$(MAKE) --no-print-directory all
	@tests/vm/gvisor_kvm.py

test-vm:
	@tools/deps.sh install build vm
	@$(MAKE) --no-print-directory all
	@tests/vm/run.py

test-programs:
	@tools/deps.sh install build test programs
	@$(MAKE) --no-print-directory all
	@tools/test_programs.sh $(BUILD)

test-engines:
	@tools/deps.sh install build test
	@$(MAKE) --no-print-directory all
	@tests/engines-table --build $(BUILD)

soak:
	@tools/deps.sh install build test
	@tools/deps.sh install start || true
	@$(MAKE) --no-print-directory all
	@tests/soak/run.py

fault:
	@tools/deps.sh install build test
	@$(MAKE) --no-print-directory all
	@tests/fault/run.py

clean:
	rm -rf $(BUILD) $(BUILD_ASAN) $(BUILD_FUZZ) $(BUILD_TSAN) $(PACKAGES) build-analyzer

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile
