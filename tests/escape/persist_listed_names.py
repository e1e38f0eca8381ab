"""Plants the configuration of hook managers, of mise, of Jujutsu, of build servers and of agents,
under every name that those programs read.

layer: sweep
control: without a sandbox they are there afterwards
"""
import os

PATHS = ["lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "sub/.lefthook.json",
         "lefthook-local.toml", ".lefthook-local.yaml",
         ".config/lefthook.yml", ".lefthook/pre-commit/x.sh", ".clinerules/hooks/PreToolUse",
         ".jj/config.toml", "mise/config.toml", "mise.ci.toml",
         ".mise.ci.toml", ".mise/tasks/x", ".config/mise.toml", ".config/mise/conf.d/x.toml",
         ".agents/settings.json", ".agents/skills/x/SKILL.md",
         ".claude/anything.json", ".claude/workflows/x.js", ".claude/statusline.sh", ".bsp/x.json",
         ".srt-settings.json",
         ".devcontainer/x/devcontainer.json", ".pre-commit-config.yml", ".overcommit.yml",
         ".simple-git-hooks.cjs", "hk.pkl", ".lsp.json",
         ".tool-versions", "sub/.tool-versions", ".miserc.toml", ".miserc.local.toml",
         ".config/miserc.toml"]
FREE = [".claude/worktrees/a/README", ".claude/plans/p.md", ".claude/notes/n.txt",
        ".claude/CLAUDE.md", ".agents/notes.md", ".nvmrc",
        ".cursorrules", ".windsurfrules", ".goosehints", ".aider.chat.history.md", "mise/README"]


def scene(s):
    s.args = {"paths": PATHS + FREE}


def attack(a):
    for path in a["paths"]:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        put(path, "PLANTED BY THE ATTACK\n")
    os.makedirs("other/.jj")
    put("other/.jj/repo", "../../evil\n")
    put(".claude/worktrees/a/.envrc", "PLANTED BY THE ATTACK\n")
    os.makedirs("b/.claude")
    os.symlink("../../evil", "b/.claude/worktrees")


def escaped(s, r):
    s.t.check(all(os.path.exists(os.path.join(s.ws, p)) for p in FREE),
              "what agents must be able to write stays")
    left = [p for p in [*PATHS, "other/.jj/repo", ".claude/worktrees/a/.envrc",
                        "b/.claude/worktrees"] if os.path.lexists(os.path.join(s.ws, p))]
    s.t.say(f"left: {left}")
    return bool(left)
