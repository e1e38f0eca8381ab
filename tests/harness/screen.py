"""A person at a terminal, played by tmux: `with Screen(t) as s:` is a shell on a terminal of its
own.

tmux is the terminal: what it shows is what a person would see, sequences that it does not obey are
not shown, and what it answers by itself is typed as a terminal would type it.
"""
import os
import shlex
import time

from . import context

PROMPT = "out> "


class Screen:
    """One terminal with a shell (bash --norc) in a new workspace."""

    def __init__(self, t, cols=80, rows=24, files=None, env=None, root=False):
        self.t = t
        self.root = root
        self.ws = t.workspace(files)
        self.socket = os.path.join(t.fresh_dir("tmux"), "s")
        self.env = {"TERM": "xterm-256color", **(env or {})}
        t.write(os.path.dirname(self.socket), {"rc": f"PS1='{PROMPT}'\n"})
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), "-c",
                   self.ws,
                   f"exec bash --noprofile --rcfile {self.socket[:-1]}rc")
        self._tmux("set", "-g", "remain-on-exit", "on")
        self.t.defer(self._end)
        self.wait(lambda shown: PROMPT.strip() in shown, "a prompt")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def _run(self, *args):
        process = self.t.popen(["tmux", "-S", self.socket, *args], env=self.env, cwd=self.ws,
                               root=self.root)
        out, err = process.communicate(timeout=20)
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def _tmux(self, *args):
        rc, out, err = self._run(*args)
        if rc != 0:
            raise context.Failed(f"tmux {args[0]}: {err}")
        return out

    def _end(self):
        if os.path.exists(self.socket):
            self._run("kill-server")
            self.t.wait_until(lambda: self._run("has-session")[0] != 0, 10, "tmux did not end")

    def type(self, text):
        """Types the text as it is."""
        self._tmux("send-keys", "-l", "--", text)

    def keys(self, *names):
        """Presses keys by their tmux names: Enter, C-z, Escape."""
        self._tmux("send-keys", *names)

    def line(self, text):
        """Types the text and Enter."""
        self.type(text)
        self.keys("Enter")

    def paste(self, text):
        """Pastes, marked as such where the program has asked for that."""
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p")

    def text(self):
        """What is shown, without empty lines at the end."""
        return self._tmux("capture-pane", "-p").rstrip("\n")

    def colours(self):
        """What is shown, with its colours and emphasis."""
        return self._tmux("capture-pane", "-p", "-e").rstrip("\n")

    def ask(self, what):
        """One of tmux's variables of this terminal: alternate_on, cursor_flag, mouse_any_flag,
        pane_title."""
        return self._tmux("display-message", "-p", "#{" + what + "}").strip()

    def resize(self, cols, rows):
        """Another size of the window."""
        self._tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def pid(self):
        """The shell's process id."""
        return int(self.ask("pane_pid"))

    def wait(self, condition, what, seconds=20):
        """Waits until condition(what is shown) holds, or a text is shown. Returns what is shown."""
        holds = condition if callable(condition) else (lambda shown: condition in shown)
        deadline = time.monotonic() + seconds
        while True:
            shown = self.text()
            if holds(shown):
                return shown
            if time.monotonic() > deadline:
                raise context.Failed(f"no {what} within {seconds} s; shown:\n{shown}")
            time.sleep(0.03)

    def press(self, key, text):
        """Presses the key until the text is shown."""
        return self.wait(lambda _: self.keys(key) or text in self.text(), f"{text!r} after {key}")

    def see(self, text):
        """Waits until the text is shown."""
        return self.wait(text, repr(text))

    def prompt(self):
        """Waits until the last line is the shell's prompt. What a job in the background shows may
        stand behind it: Enter brings another one."""
        began = time.monotonic()

        def there(shown):
            if shown.splitlines()[-1:] == [PROMPT.strip()]:
                return True
            if time.monotonic() > began + 1:
                self.keys("Enter")
                time.sleep(0.2)
            return False
        return self.wait(there, "prompt of the outer shell")

    def front(self):
        """Has the shell bring its job to the front. It must have read the line before anything else
        is typed: a ^C would take it out of the terminal's queue, unread."""
        self.prompt()
        self.line("fg")
        self.wait(lambda shown: "fg\n" in shown, "the job in front")

    def ward(self, *args):
        """Types a `ward` command line."""
        self.line(" ".join(map(shlex.quote, self.t.ward_argv(*args))))

    def fresh(self):
        """Waits for the prompt and empties the screen."""
        self.prompt()
        self.keys("C-l")
        self.wait(lambda shown: shown.strip() == PROMPT.strip(), "empty screen")

    def modes(self):
        """The modes of the terminal, as the shell's stty tells."""
        self.prompt()
        path = os.path.join(self.ws, "modes")
        self.line(f"stty -a >{path}.new && mv {path}.new {path}")
        self.t.wait_until(lambda: os.path.exists(path), 10, "no stty")
        text = self.t.read(path)
        os.unlink(path)
        self.prompt()
        return text
