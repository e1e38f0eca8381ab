#!/bin/sh
# A pre-commit hook: copy it to .git/hooks/pre-commit. It checks tools.yaml where a commit changes
# it, against the last commit.
set -eu
if git diff --cached --quiet -- tools.yaml; then
	exit 0
fi
exec ward check --base HEAD tools.yaml
