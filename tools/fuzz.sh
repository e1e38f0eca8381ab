#!/bin/bash
# Runs every fuzzer for a while: fuzz.sh BUILD_FUZZ SECONDS
#
# A fuzzer is an executable fuzz-NAME in BUILD_FUZZ/fuzz; its seeds are fuzz/corpus/NAME (kept in
# git), what it finds grows in BUILD_FUZZ/corpus/NAME. A crash, a leak or a case slower than five
# seconds leaves its input in BUILD_FUZZ/crash/NAME-* and fails the whole. One fuzzer a processor at
# a time.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 seconds=$2
passed=0 failed=0
mkdir -p "$build/crash" || exit 1

one() {
	local fuzzer=$1 name corpus
	name=$(basename "$fuzzer")
	name=${name#fuzz-}
	corpus=$build/corpus/$name
	mkdir -p "$corpus" "fuzz/corpus/$name" 2>/dev/null
	"$fuzzer" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$build/crash/$name-" "$corpus" "fuzz/corpus/$name" \
			>"$build/crash/$name.log" 2>&1
}

names=() pids=()
for fuzzer in "$build"/fuzz/fuzz-*; do
	[ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	echo "fuzzing $(basename "$fuzzer") for $seconds s"
	one "$fuzzer" &
	names+=("$(basename "$fuzzer")") pids+=($!)
done

for i in "${!pids[@]}"; do
	name=${names[$i]#fuzz-}
	log=$build/crash/$name.log
	if wait "${pids[$i]}"; then
		passed=$((passed + 1))
		verdict=clean
	else
		failed=$((failed + 1))
		verdict="FAILED, see $log"
	fi
	printf '%-16s %12s inputs  %s\n' "$name" \
		"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$verdict"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
