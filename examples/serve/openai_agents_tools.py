"""A tool for the OpenAI Agents SDK that works in a sandbox: a model's commands stay there.

    pip install openai-agents ./sdk/python
    WARD_HOST=http://127.0.0.1:3000 WARD_TOKEN=... python3 openai_agents_tools.py "What is 2**100?"
"""
import asyncio
import sys

from agents import Agent, Runner, function_tool

import ward_sandbox as ward

OUTPUT_MOST = 20000


def make_tool(box):
    """A tool of one sandbox. What goes wrong is said to the model, with what to do about it."""
    @function_tool
    async def run_command(command: str) -> str:
        """Run a shell command in a Linux sandbox; the files of earlier commands are there."""
        try:
            done = await box.run(command, timeout=60)
        except ward.WardError as e:
            return f"error: {e}"
        return f"exit status {done.code}\n{done.stdout}{done.stderr}"[:OUTPUT_MOST]

    return run_command


async def ask(question, model="gpt-4.1"):
    """The model's answer; each of its calls runs in a sandbox that ends with the answer."""
    async with await ward.acreate(timeout=600) as box:
        agent = Agent(name="worker", model=model, tools=[make_tool(box)],
                      instructions="Work in the sandbox; run commands to find out.")
        return (await Runner.run(agent, question)).final_output


if __name__ == "__main__":
    print(asyncio.run(ask(" ".join(sys.argv[1:]))))
