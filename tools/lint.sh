#!/bin/bash
# Every static check, each a failing one: lint.sh BUILD
# Prints what each found; ends with "N passed, N failed" over the checks.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1
passed=0 failed=0
jobs=$(nproc)

check() {
	local name=$1
	shift
	printf '== %s\n' "$name"
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf -- '-- %s: FAILED\n' "$name"
	fi
}

# clang-tidy reads the compile commands without what only gcc knows.
tidy() {
	mkdir -p "$build/tidy" && python3 -c 'import json, sys
rows = [r for r in json.load(open(sys.argv[1])) if "musl-gcc.specs" not in r["command"]]	# what glibc compiles, too
print(json.dumps(rows).replace(" -fno-tree-loop-distribute-patterns", ""))' "$build/compile_commands.json" \
		>"$build/tidy/compile_commands.json" || return 1
	git ls-files 'src/*.c' ':!src/guest' | xargs -r -P "$jobs" -n 4 clang-tidy --quiet \
		-p "$build/tidy" --extra-arg-before=-include \
		--extra-arg-before="$PWD/tools/analyzer.h" --extra-arg=-I"$PWD/src" \
		2> >(grep -v 'warnings generated' >&2) &&
		clang-tidy --quiet -p "$build/tidy" src/guest/*.c \
			2> >(grep -v 'warnings generated' >&2)
}

# style and unusedFunction are left out: the compiler's own warnings cover the one, the other needs
# all entry points
cpp_check() {
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--suppressions-list=tools/cppcheck.suppress -D__x86_64__ -D_GNU_SOURCE -j "$jobs" -I src -I tables -I "$build/src" src
}

# A build of its own, because -fanalyzer is slow and its warnings are errors there. gcc 12 loses
# track of arrays: a pointer stored in one is called leaked (ASan looks for that), what a call
# filled is called uninitialized (clang-tidy looks for that).
analyzer() {
	[ -f build-analyzer/build.ninja ] ||
		meson setup build-analyzer -Dlibc=glibc -Dc_args="-include $PWD/tools/analyzer.h -I$PWD/src -fanalyzer -Wno-unused-value -Wno-analyzer-malloc-leak -Wno-analyzer-use-of-uninitialized-value" >/dev/null || return 1
	# every program and library of src, with the C library of GNU: what has no musl-gcc must
	# compile, too
	ninja -C build-analyzer -t targets all | sed -n 's/^\(src[^:]*\): c\(pp\)\{0,1\}_LINKER$/\1/p' | xargs ninja -C build-analyzer >build-analyzer/log 2>&1 || {
		grep -A12 -E 'error:|FAILED' build-analyzer/log
		return 1
	}
}

shell_check() { git ls-files | grep -E '\.sh$|^\.ci/run$|^tests/run-tests$' | while read -r f; do
	head -n 1 "$f" | grep -q 'sh' && echo "$f"
done | xargs -r shellcheck -S warning; }

check documents tools/check_docs.py
check "layer rule" tools/check_layers.py
check "generated files" tools/check_generated.sh "$build"
check shellcheck shell_check
check cppcheck cpp_check
check clang-tidy tidy
check "gcc -fanalyzer" analyzer

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
