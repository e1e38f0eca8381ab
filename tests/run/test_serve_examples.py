"""examples/serve: the stock SDKs of E2B, a program that moves over, and tools for LangChain, the
OpenAI Agents SDK and Vercel's AI SDK with a model that follows a script, against ward serve.
Without a registry these tests are skipped."""
import os
import shutil

from harness import by_turns, libward, timeout
from harness.serve import Server, environment, fetch_once, sdk
from run.test_sdk_python import package

NATIVE_ONLY = "the same calls run sanitized in test_serve.py; the rest is other programs"
EXAMPLES = os.path.join(libward.TOP, "examples/serve")
QUICKSTART = "hello from ward\nsum: 42\nno network\n"

# The script of each model: it asks for a command, and its answer is what the command printed.
LANGCHAIN = r"""
import re
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
import langchain_tools

class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        assert [t.name for t in tools] == ["run_command", "write_file"]
        return self

    def invoke(self, messages, *_, **__):
        seen = [m.content for m in messages if isinstance(m, ToolMessage)]
        if len(seen) < 3:
            name, arguments = [
                ("write_file", {"path": "n.py", "text": "print(6 * 7)"}),
                ("run_command", {"command": "python3 n.py; exit 3"}),
                ("write_file", {"path": "/etc/passwd", "text": "x"})][len(seen)]
            call = {"name": name, "args": arguments, "id": str(len(seen))}
            return AIMessage("", tool_calls=[call])
        assert seen[0] == "written" and seen[1] == "exit status 3\n42\n", seen
        assert seen[2].startswith("error: "), seen
        return AIMessage("it is " + re.search("42", seen[1])[0])

print(langchain_tools.ask(Scripted(messages=iter(())), "What is 6 * 7?"))
"""
AGENTS = r"""
import asyncio, json
from agents import ModelResponse, Usage, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import (ResponseFunctionToolCall, ResponseOutputMessage,
                                    ResponseOutputText)
import openai_agents_tools

class Scripted(Model):
    def stream_response(self, *_, **__):
        raise NotImplementedError

    async def get_response(self, system_instructions, input, *_, **__):
        seen = [i["output"] for i in input if isinstance(i, dict)
                and i.get("type") == "function_call_output"] if isinstance(input, list) else []
        if not seen:
            step = ResponseFunctionToolCall(
                arguments=json.dumps({"command": "echo $((6 * 7))"}), call_id="1",
                name="run_command", type="function_call")
        else:
            assert seen == ["exit status 0\n42\n"], seen
            step = ResponseOutputMessage(
                id="1", role="assistant", status="completed", type="message",
                content=[ResponseOutputText(annotations=[], text="it is 42", type="output_text")])
        return ModelResponse(output=[step], usage=Usage(), response_id=None)

set_tracing_disabled(True)
print(asyncio.run(openai_agents_tools.ask("What is 6 * 7?", Scripted())))
"""
VERCEL = r"""
import { MockLanguageModelV3 } from 'ai/test'
import { ask } from './vercel_ai_tools.js'
const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 } }
let step = 0
const model = new MockLanguageModelV3({ doGenerate: async ({ prompt }) => {
  if (step++ === 0)
    return { content: [{ type: 'tool-call', toolCallId: '1', toolName: 'run_command',
      input: JSON.stringify({ command: 'echo $((6 * 7))' }) }], usage, warnings: [],
    finishReason: { unified: 'tool-calls', raw: undefined } }
  const seen = JSON.stringify(prompt.at(-1))
  if (!seen.includes('exit status 0\\\\n42\\\\n') && !seen.includes('exit status 0\\n42\\n'))
    throw new Error(seen)
  return { content: [{ type: 'text', text: 'it is 42' }], usage, warnings: [],
    finishReason: { unified: 'stop', raw: undefined } }
} })
console.log(await ask(model, 'What is 6 * 7?'))
"""


def remote(s):
    return {"WARD_HOST": f"http://127.0.0.1:{s.port}", "WARD_TOKEN": s.key}


def python(t, env, path, *words):
    r = t.run("/usr/bin/python3", *words, cwd=EXAMPLES, timeout=100,
              env={"PYTHONPATH": ":".join([EXAMPLES, *path]), "PYTHONDONTWRITEBYTECODE": "1",
                   **env})
    t.equal(r.rc, 0)
    return r.out


@by_turns
@timeout(400)
def test_serve_examples_e2b(t):
    s = Server(t)
    path = [sdk(t, "pip")]
    t.equal(python(t, environment(s), path, "quickstart.py"), QUICKSTART)
    t.equal(python(t, environment(s), path, "move.py"), "2 of 3 right\n")
    t.equal(s.ask("GET", "/v2/sandboxes").json, [])


@by_turns
@timeout(400)
def test_serve_examples_python_agents(t):
    s = Server(t)
    path = [package(t), sdk(t, "pip", "langchain-core", "openai-agents")]
    env = {**remote(s), "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
    t.equal(python(t, env, path, "-c", LANGCHAIN), "it is 42\n")
    t.equal(python(t, env, path, "-c", AGENTS), "it is 42\n")
    t.equal(s.ask("GET", "/v2/sandboxes").json, [])


def compiled(t):
    """The examples in TypeScript, checked and compiled beside the packages that they use."""
    def prepare(work):
        for name in ("sdk/typescript", "examples/serve"):
            shutil.copytree(os.path.join(libward.TOP, name),
                            os.path.join(work, os.path.basename(name)),
                            ignore=shutil.ignore_patterns("node_modules", "dist", "*.py"))
        return ["sh", "-e", "-c", "cd typescript; npm install --no-audit --no-fund; "
                "npm pack --pack-destination ..; cd ..; npm install --no-audit --no-fund "
                "./ward-sandbox-0.1.0.tgz ai@6 e2b typescript@5 @types/node@20; "
                "npm pkg set type=module; npx tsc --strict --skipLibCheck --target es2022 "
                "--module nodenext --outDir . serve/*.ts; rm -r serve typescript"]
    return fetch_once(t, "examples-npm", prepare)


@by_turns
@timeout(400)
def test_serve_examples_typescript(t):
    s = Server(t)
    place = t.fresh_dir("js")
    for name in ("quickstart.js", "vercel_ai_tools.js"):
        shutil.copy(os.path.join(compiled(t), name), place)
    os.symlink(os.path.join(compiled(t), "node_modules"), os.path.join(place, "node_modules"))
    t.write(place, {"package.json": '{"type": "module"}', "vercel.js": VERCEL})
    r = t.run("node", "quickstart.js", cwd=place, env=environment(s), timeout=60)
    t.equal((r.rc, r.out, r.err), (0, QUICKSTART, ""))
    r = t.run("node", "vercel.js", cwd=place, env=remote(s), timeout=60)
    t.equal((r.rc, r.out), (0, "it is 42\n"))
    t.equal(s.ask("GET", "/v2/sandboxes").json, [])
