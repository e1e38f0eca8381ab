"""Programs that stand for agents, profiles of one's own, and a terminal in a world of servers."""
import os

from . import context, users
from .screen import Screen

PROFILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../profiles")
BUILT_IN = sorted(f[:-5] for f in os.listdir(PROFILES))


def own_profile(t, name, text):
    """Puts a profile into the user's own directory."""
    t.write(t.home, {f".config/ward/profiles/{name}.yaml": text})


def program(t, path, text="#!/bin/sh\necho ran $0 \"$@\"\n"):
    """Makes an executable script."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


class WorldScreen(Screen):
    """A terminal whose shell runs at home in a World, as the test's user."""

    def __init__(self, t, world, **options):
        self.world = world
        super().__init__(t, **options)

    def _run(self, *args):
        wrap = [*self.world.wrap(self.ws), *users.setpriv(self.t.person)]
        process = self.t.popen([*wrap, "tmux", "-S", self.socket, *args], env=self.env, cwd=self.ws,
                               root=True)
        out, err = process.communicate(timeout=30)
        if process.returncode is None:
            raise context.Failed("tmux does not end")
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
