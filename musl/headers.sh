#!/bin/sh
# The kernel's headers and libyaml's, which musl does not bring, in a directory without those of
# glibc: headers.sh DIR CC...
set -eu
dir=$1
shift
mkdir -p "$dir"
for header in linux/types.h asm/types.h asm-generic/types.h yaml.h; do
	path=$(printf '#include <%s>\n' "$header" | "$@" -E - |
		sed -n "s|^# [0-9]* \"\(.*/$header\)\".*|\1|p" | head -n 1)
	top=${header%%/*}
	ln -sfn "${path%"${header#"$top"}"}" "$dir/$top"
done
