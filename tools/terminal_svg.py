#!/usr/bin/python3
"""Runs commands on a terminal, one after the other, and draws what it showed as an SVG.

    tools/terminal_svg.py -o docs/run.svg [--columns N] [--ward PROGRAM] COMMAND...

In: commands for sh; they run in a throw-away project (a git repository with the sample agent and a
.env), with a home and ward's state beside it. Out: an SVG with the text as text, so that it can be
searched. docs/run.svg is made by

    tools/terminal_svg.py -o docs/run.svg \
        'ward run --timeout 60 --memory 512M -- python3 agent.py </dev/null' 'ward quarantine ls'
"""
import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios

TOP = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 7.8, 18		# of one character, in pixels
MARGIN, BAR = 16, 30
STYLE = """text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;
       fill: #d0d7de; white-space: pre }
.prompt { fill: #7ee787; font-weight: bold } .typed { fill: #ffffff; font-weight: bold }
.red { fill: #ff7b72 } .green { fill: #7ee787 } .yellow { fill: #e3b341 }
.bold { font-weight: bold }"""
PROMPT = '<tspan class="prompt">~/project $</tspan>'
COLOURS = {"1": "bold", "31": "red", "32": "green", "33": "yellow"}


def project(base):
    """The throw-away project; returns its directory."""
    place = base / "project"
    place.mkdir()
    (base / "home").mkdir()
    (place / ".env").write_text("API_TOKEN=do-not-read-me\n")
    (place / "agent.py").write_text((TOP / "examples/agent.py").read_text())
    name = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*name, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place


def shown(command, place, environment, columns):
    """What a terminal shows when the command runs on it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(["sh", "-c", command], cwd=place, env=environment, stdin=theirs,
                               stdout=theirs, stderr=theirs, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 1))
    os.close(theirs)
    data = b""
    try:
        while piece := os.read(ours, 65536):
            data += piece
    except OSError:	# the terminal has no other side any more
        pass
    process.wait()
    return data.decode(errors="replace").replace("\r", "").split("\n")


def spans(line):
    """The line as SVG, its colours as classes."""
    out, kind = [], ""
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
        if part.startswith("\x1b["):
            if part.endswith("m"):
                kind = " ".join(COLOURS[c] for c in part[2:-1].split(";") if c in COLOURS)
        elif part:
            text = html.escape(part, quote=False)
            out.append(f'<tspan class="{kind}">{text}</tspan>' if kind else text)
    return "".join(out)


def cut(line, columns):
    """The lines that a terminal of this width makes of one."""
    if "\x1b" in line:
        return [line]
    return [line[i:i + columns] for i in range(0, len(line), columns)] or [""]


def draw(rows, columns):
    """The picture."""
    wide, high = round(columns * WIDTH + 2 * MARGIN), round(len(rows) * HEIGHT + MARGIN + BAR)
    text = [f'<text x="{MARGIN}" y="{BAR + HEIGHT * (i + 1) - 4}">{row}</text>'
            for i, row in enumerate(rows) if row]
    dots = [f'<circle cx="{18 + 18 * i}" cy="16" r="5.5" fill="{c}"/>' for i, c in
            enumerate(("#ff5f57", "#febc2e", "#28c840"))]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}"'
    back = '<rect width="100%" height="100%" rx="8" fill="#161b22"/>'
    return "\n".join([f'{head} width="{wide}" height="{high}">', f"<style>{STYLE}</style>", back,
                      *dots, *text, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--columns", type=int, default=109)
    parser.add_argument("--ward", type=pathlib.Path, default=TOP / "build/src/cli/ward")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        base = pathlib.Path(name)
        place = project(base)
        environment = {"PATH": f"{args.ward.parent}:{os.environ['PATH']}", "TERM": "xterm",
                       "LANG": "C.UTF-8", "HOME": str(base / "home"),
                       "WARD_STATE_DIR": str(base / "state"), "WARD_RUNTIME_DIR": str(base / "run")}
        (base / "run").mkdir(mode=0o700)
        for command in args.command:
            rows.append(f'{PROMPT} <tspan class="typed">{html.escape(command)}</tspan>')
            lines = shown(command, place, environment, args.columns)
            while lines and not lines[-1].strip():
                lines.pop()
            for line in lines:
                line = line.replace(str(place), "~/project").replace(str(base), "~")
                rows += [spans(part) for part in cut(line, args.columns)]
            rows.append("")
    rows.append(PROMPT)
    args.output.write_text(draw(rows, args.columns))


if __name__ == "__main__":
    main()
