#!/bin/bash
# Fetches mise for tests/run/test_mise.py: mise.sh [DIR]. It is in no Debian release; npm's registry
# has the program as a package.
set -eu
cd "$(dirname "$0")/.."
version=2026.9.15
to=${1:-build/mise}
[ -x "$to/mise" ] && exit 0
command -v npm >/dev/null || { echo "mise.sh: needs npm: apt-get install -y npm" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "@jdxcode/mise-linux-x64@$version" >/dev/null)
tar -xzf "$work"/*.tgz -C "$work"
mkdir -p "$to"
install -m 0755 "$work/package/bin/mise" "$to/mise"
"$to/mise" --version
