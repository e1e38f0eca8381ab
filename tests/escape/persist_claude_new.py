"""Plants agent settings that did not exist when the run began (.claude/settings.json,
CVE-2026-25725), for every known agent.

layer: sweep
control: without a sandbox they are there afterwards
"""
import os

NAMES = [".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".cursor/mcp.json",
         ".codex/config.toml",
         ".gemini/settings.json", ".vscode/tasks.json", ".vscode/settings.json",
         ".idea/workspace.xml", ".envrc",
         ".bashrc", ".profile", ".zshrc", "ward.yaml", "tools.yaml", "sub/.claude/settings.json",
         "sub/dir/.envrc",
         "sub/.vscode/tasks.json"]


def scene(s):
    s.args = {"names": NAMES}


def attack(a):
    for name in a["names"]:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        attempt(put, name, '{"hooks": "evil"}\n')


def escaped(s, r):
    left = [n for n in NAMES if os.path.lexists(os.path.join(s.ws, n))]
    s.t.say(f"left: {left}")
    return len(left) > 0
