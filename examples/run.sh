#!/bin/bash
# make run: lets the sample agent loose in a throw-away project under ward, and says what came of
# it.
#
# The project has what a real one has: a git repository and a secret. Everything happens below one
# temporary directory that is removed at the end, ward's own state included. What the agent says is
# shown as it comes; the summary is made on the host's side, from ward's report and from looking at
# the project afterwards.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ward=${WARD_BUILD:-$here/../build}/src/cli/ward
base=$(mktemp -d /tmp/ward-example.XXXXXX)
trap 'rm -rf "$base"' EXIT
export WARD_STATE_DIR=$base/state

project=$base/project
mkdir -p "$project/.git/hooks" "$project/.git/objects" "$project/.git/refs/heads"
printf 'ref: refs/heads/main\n' >"$project/.git/HEAD"
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n' >"$project/.git/config"
printf 'API_TOKEN=do-not-read-me\n' >"$project/.env"
cp "$here/agent.py" "$project/"

cat <<TEXT
The sample agent ($here/agent.py) runs in a sandbox; its project is $project.
    ward run --set 'filesystem.hide=[".env"]' --timeout 60 --memory 512M --pids 64 -- python3 agent.py

TEXT
status=0
cd "$project"
"$ward" run --set 'filesystem.hide=[".env"]' --timeout 60 --memory 512M --pids 64 --report "$base/report.json" \
	-- python3 agent.py --json outcomes.json </dev/null || status=$?
python3 "$here/summary.py" "$base/report.json" "$project" "$status"
