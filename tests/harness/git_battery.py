"""The host's git as the judge of what a sandbox left behind.

A battery of ordinary git commands is run in every directory that looks like a repository. What the
agent wrote must not run: each attack would touch a marker file. Nothing outside of the workspace
may change, no command may hang, nobody may be called, and the repositories that were there before
are whole.
"""
import hashlib
import os
import socket
import threading

COMMANDS = """
status
log --oneline -3 --stat
diff
checkout -- .
restore .
branch -avv
stash
fetch --all
pull
submodule status
submodule update --init
worktree list
worktree repair
worktree prune
rebase --continue
rebase --skip
cherry-pick --continue
bisect good
am --skip
add -A
commit -qm by-hand
checkout -q side
checkout -q main
push
gc -q
fsck
""".strip().splitlines()

# fewer, for places that are many
SHORT = ("status", "diff", "checkout -- .", "fetch --all", "worktree repair", "rebase --continue",
         "commit -qam by-hand")

ALWAYS = "-c protocol.file.allow=always -c user.name=h -c user.email=h@example.com"
ENV = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_ASKPASS": "true",
       "SSH_ASKPASS": "true",
       "GIT_SSH_COMMAND": "false", "GIT_PAGER": "cat"}
LIMIT_S = 25	# for one command


class Listener:
    """Counts who calls."""

    def __init__(self):
        self.calls = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.calls.append(connection.recv(200))
            connection.close()

    def close(self):
        """Stops."""
        self.socket.close()


def is_shape(path):
    """Whether git might take the directory for a repository."""
    return all(os.path.lexists(os.path.join(path, n)) for n in ("HEAD", "objects", "refs"))


def places(root, most=400):
    """Directories in which git finds a repository of its own, links not followed."""
    found = []
    for path, dirs, files in os.walk(root):
        if ".git" in dirs or ".git" in files or is_shape(path):
            found.append(path)
        if len(found) >= most:
            break
        dirs[:] = [d for d in dirs if d != "objects" or not is_shape(path)]
    return found


def script(lines, directory):
    """A shell script that runs the commands and names those that hang."""
    out = [f"cd '{directory}' || exit 0"]
    for line in lines:
        out.append(f"timeout -k 1 {LIMIT_S} git {ALWAYS} {line} </dev/null >/dev/null 2>&1; "
                   f"case $? in 124|137) echo 'HANGS in {directory}: git {line}';; esac")
    return "\n".join(out)


def snapshot(directory):
    """Every path below with its type and content."""
    out = {}
    for path, dirs, files in os.walk(directory):
        for name in dirs + files:
            full = os.path.join(path, name)
            if os.path.islink(full):
                out[full] = os.readlink(full)
            elif os.path.isfile(full):
                with open(full, "rb") as f:
                    out[full] = hashlib.sha1(f.read()).hexdigest()
            else:
                out[full] = "other"
    return out
