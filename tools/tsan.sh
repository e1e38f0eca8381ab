#!/bin/bash
# Looks for data races in libward: tsan.sh BUILD BUILD_TSAN
# The library and the host program are built with ThreadSanitizer, ward is BUILD's. Ends with "N
# passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 build_tsan=$2
passed=0 failed=0
[ -f "$build_tsan/build.ninja" ] ||
	meson setup "$build_tsan" --prefix=/ -Db_sanitize=thread -Db_lundef=false -Dstatic=false >/dev/null || exit 1
ninja -C "$build_tsan" src/api/libward.a >"$build_tsan/log" 2>&1 || {
	grep -A12 -E 'error:|FAILED' "$build_tsan/log"
	exit 1
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export WARD_STATE_DIR=$work/state WARD_RUNTIME_DIR=$work/runtime PATH=$PWD/$build/src/cli:$PATH
mkdir "$work/state" "$work/runtime" "$work/workspace"
chmod 700 "$work"/*
for name in threads box; do
	if cc -g -fsanitize=thread -D_GNU_SOURCE -Iinclude "tests/api/$name.c" "$build_tsan/src/api/libward.a" -pthread -o "$work/$name" &&
		timeout 120 "$work/$name" "$work/workspace" >"$work/log" 2>&1; then
		passed=$((passed + 1))
		echo "ok   $name"
	else
		failed=$((failed + 1))
		head -n 60 "$work/log"
		echo "FAIL $name"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
