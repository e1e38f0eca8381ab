#!/bin/sh
# Makes the static library: archive.sh OUTPUT WORK API.a LIB.a RULES.a POLICY.a BASE.a -- CC...
# All of the API and what it needs of the others becomes one object in which only the public names
# are global.
set -eu
output=$1 work=$2 api=$3 lib=$4 rules=$5 policy=$6 base=$7
shift 8
mkdir -p "$work"
"$@" -r -nostdlib -o "$work/ward.o" -Wl,--whole-archive "$api" -Wl,--no-whole-archive \
	-Wl,--start-group "$lib" "$rules" "$policy" "$base" -Wl,--end-group
objcopy --localize-hidden "$work/ward.o"
rm -f "$output"
ar rcsD "$output" "$work/ward.o"
