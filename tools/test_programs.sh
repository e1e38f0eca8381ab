#!/bin/bash
# Real programs and agents in a sandbox: test_programs.sh BUILD. What is heavy and needs packages
# from outside, apart from `make test`. Beside them what takes long for other reasons: thousands of
# connections, answers that come late. The agents come from npm's configured registry, each time
# anew; without it their tests are skipped and say so.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1
agents=$PWD/$build/agents
mkdir -p "$agents"
for package in @anthropic-ai/claude-code @openai/codex @google/gemini-cli; do
	npm install -g --prefix "$agents" --no-audit --no-fund --loglevel error "$package" </dev/null ||
		echo "test-programs: npm could not install $package: its test is skipped" >&2
done
node=$PWD/$build/node-tests
mkdir -p "$node"
npm install --prefix "$node" --no-audit --no-fund --loglevel error @grpc/grpc-js @grpc/proto-loader ws </dev/null ||
	echo "test-programs: npm could not install gRPC and ws: their tests are skipped" >&2
chmod -R a+rX "$agents" "$node"
WARD_TEST_AGENTS=$agents WARD_TEST_NODE=$node exec tests/run-tests --slow --again --build "$PWD/$build" --only test_programs --only test_agent_programs --only test_developer_tools --only test_net_clients --only test_net_servers \
	--only test_net_flood --only test_inspect_programs --only test_inspect_flood --only test_learn --only gate_late_answer
