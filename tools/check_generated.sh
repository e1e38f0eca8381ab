#!/bin/bash
# Fails when a file that a generator makes from tables/ is not what the generator would make now.
# A tools/gen_*.py that writes into the tree takes --check: it writes nothing and exits 1 with the
# name of each stale file. Generators that write into the build directory are meson's matter and
# never stale.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
for generator in tools/gen_*.py; do
	grep -qs -e "--check" "$generator" || continue
	if /usr/bin/env python3 "$generator" --check; then
		passed=$((passed + 1))
	else
		echo "$generator: stale; run it without --check and commit what it writes" >&2
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
