"""Tools for LangChain that work in a sandbox: a model's commands and files stay there.

    pip install langchain-core langchain-openai ./sdk/python
    WARD_HOST=http://127.0.0.1:3000 WARD_TOKEN=... python3 langchain_tools.py "What is 2 ** 100?"
"""
import sys

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

import ward_sandbox as ward

OUTPUT_MOST = 20000


def make_tools(box):
    """Tools of one sandbox. What goes wrong is said to the model, with what to do about it."""
    @tool
    def run_command(command: str) -> str:
        """Run a shell command in a Linux sandbox; the files of earlier commands are there."""
        try:
            done = box.run(command, timeout=60)
        except ward.WardError as e:
            return f"error: {e}"
        return f"exit status {done.code}\n{done.stdout}{done.stderr}"[:OUTPUT_MOST]

    @tool
    def write_file(path: str, text: str) -> str:
        """Write a text file in the sandbox."""
        try:
            box.files.write(path, text)
        except ward.WardError as e:
            return f"error: {e}"
        return "written"

    return [run_command, write_file]


def ask(model, question, steps=20):
    """The model's answer; each of its calls runs in a sandbox that ends with the answer."""
    with ward.create(timeout=600) as box:
        tools = {t.name: t for t in make_tools(box)}
        bound = model.bind_tools(list(tools.values()))
        messages = [HumanMessage(question)]
        for _ in range(steps):
            reply = bound.invoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return reply.content
            messages += [tools[call["name"]].invoke(call) for call in reply.tool_calls]
    raise RuntimeError(f"no answer after {steps} steps")


if __name__ == "__main__":
    from langchain_openai import ChatOpenAI

    print(ask(ChatOpenAI(model="gpt-4.1"), " ".join(sys.argv[1:])))
