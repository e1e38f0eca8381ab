#!/bin/bash
# Runs every test of the tree and sums them: test.sh BUILD BUILD_ASAN
#
# Each stage prints what it likes and ends with a line "N passed, N failed[, N skipped]"; a stage
# that exits non-zero without such a line, or claims success while it exits non-zero, counts as one
# failure more. The last line is the sum of all stages.
#
# ONLY="PATTERN...": of the run and escape tests those that match, and no sanitizers.
# TURN=N: which attacks run sanitized as root and which as a user, and which sixth of the other
#   tests does (CONTRIBUTING.md). Unless set it is the number of the commit, so that a commit always
#   runs the same tests.
# Each fourth turn also has the ThreadSanitizer.
# FULL=1: every test runs sanitized as root and as a user.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 build_asan=$2
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

stage() {
	local name=$1 start=$SECONDS rc line p=0 f=0 s=0
	shift
	printf '\n== %s\n' "$name"
	"$@" 2>&1 </dev/null | tee "$log"
	rc=${PIPESTATUS[0]}
	line=$(grep -Eo '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log" | tail -n 1)
	if [ -n "$line" ]; then
		p=${line%% *} f=${line#*, } f=${f%% *}
		case $line in *" skipped") s=${line##*, } s=${s%% *} ;; esac
		[ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
	elif [ "$rc" = 0 ]; then
		p=1
	else
		f=1
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf -- '-- %s: %d passed, %d failed, %d skipped (%d s)\n' "$name" "$p" "$f" "$s" \
		$((SECONDS - start))
	[ "$f" = 0 ] || bad="$bad $name;"
}

bad=
turn=${TURN:-$(git rev-list --count HEAD 2>/dev/null || echo 0)}
alternate=(--alternate)
[ -z "${FULL:-}" ] || alternate=()
only=()
for pattern in ${ONLY:-}; do
	only+=(--only "$pattern")
done
stage "documents" tools/check_docs.py
stage "layer rule" tools/check_layers.py
stage "form" tools/check_style.py
stage "generated files" tools/check_generated.sh "$build"
stage "unit tests" tools/unit_tests.py "$build"
stage "run and escape tests" tests/run-tests --again --turn "$turn" --build "$PWD/$build" \
	"${only[@]}"
if [ -z "${ONLY:-}" ]; then
	stage "kills at random moments" env WARD_BUILD="$PWD/$build" tests/fault/run.py --points 15
	if [ -n "${FULL:-}" ] || [ $((turn % 4)) = 0 ]; then
		stage "threads of libward (TSan)" tools/tsan.sh "$build" build-tsan
	fi
	stage "unit tests (ASan+UBSan)" tools/unit_tests.py "$build_asan"
	# that an attack works without a sandbox has been seen above, and is nothing that another
	# build of ward changes
	stage "run and escape tests (ASan+UBSan)" tests/run-tests --again --no-controls \
		--turn "$turn" "${alternate[@]}" --build "$PWD/$build_asan"
fi

printf '\n'
[ -z "$bad" ] || echo "failed in:${bad%;}"
[ "$(id -u)" = 0 ] || echo "not run: the half of the tests that root has to start (sudo make test)"
tools/deps.sh check build test start waf wasm vm 2>&1
sum="$passed passed, $failed failed"
[ "$skipped" = 0 ] || sum="$sum, $skipped skipped"
echo "$sum"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
