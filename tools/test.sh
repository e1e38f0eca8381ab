#!/bin/bash
# Runs every test of the tree and sums them: test.sh BUILD BUILD_ASAN
#
# Each stage prints what it likes and ends with a line "N passed, N failed"; a stage that exits non-zero without such a
# line, or claims success while it exits non-zero, counts as one failure more. The last line is the sum of all stages.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 build_asan=$2
passed=0 failed=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

stage() {
	local name=$1 start=$SECONDS rc line p=0 f=0
	shift
	printf '\n== %s\n' "$name"
	"$@" 2>&1 </dev/null | tee "$log"
	rc=${PIPESTATUS[0]}
	line=$(grep -Eo '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	if [ -n "$line" ]; then
		p=${line%% *} f=${line#*, } f=${f%% *}
		[ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
	elif [ "$rc" = 0 ]; then
		p=1
	else
		f=1
	fi
	passed=$((passed + p)) failed=$((failed + f))
	printf -- '-- %s: %d passed, %d failed (%d s)\n' "$name" "$p" "$f" $((SECONDS - start))
	[ "$f" = 0 ] || bad="$bad $name;"
}

bad=
stage "layer rule" tools/check_layers.py
stage "generated files" tools/check_generated.sh "$build"
stage "unit tests" tools/unit_tests.py "$build"
if [ -x tests/run-tests ]; then
	stage "run and escape tests" tests/run-tests --again --build "$PWD/$build"
fi
stage "kills at random moments" env WARD_BUILD="$PWD/$build" tests/fault/run.py --points 15
stage "threads of libward (TSan)" tools/tsan.sh "$build" build-tsan
stage "unit tests (ASan+UBSan)" tools/unit_tests.py "$build_asan"
if [ -x tests/run-tests ]; then
	# that an attack works without a sandbox has been seen above, and is nothing that another build of ward changes
	stage "run and escape tests (ASan+UBSan)" tests/run-tests --again --no-controls --build "$PWD/$build_asan"
fi

printf '\n'
[ -z "$bad" ] || echo "failed in:${bad%;}"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
