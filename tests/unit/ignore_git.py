#!/usr/bin/python3
"""Compares ward's reading of gitignore patterns with git's own, on generated patterns and a real
tree.

Usage: ignore_git.py FILTER [ROUNDS]. A difference prints the patterns and the path, and fails.
"""
import os
import random
import subprocess
import sys
import tempfile

NAMES = ["a", "b", "ab", "abc", "foo", "bar", "foo.c", "a.key", ".env", "a b", "b ", "[x]", "a-b",
         "A", "x*y", "!n", "#c", "a\\b", "é"]
PIECES = ["a", "b", "c", "ab", "foo", "bar", ".c", "*", "*", "**", "**", "?", "/", "/", "/", "[ab]",
          "[!a]", "[^b]", "[a-c]",
          "[[:alpha:]]", "[[:upper:]]", "[[:bogus:]]", "[]a]", "[a", "\\", "\\*", "\\a", "\\[", ".",
          "-", " ", "x", "!", "#",
          "[a-]", "[--a]", "[\\]]", "[[:alpha:]", "[[:]", "**/", "/**", "\\/", "é", "[a/b]", "\t"]
FIXED = ["", "!", "/", "//", "!/", "*", "**", "***", "/**", "**/", "/*", "a/**/b", "a**/b", "a/**b",
         "**/foo", "foo/**", "/foo", "foo/",
         "!foo", "\\!n", "\\#c", "#c", "a\\ ", "b\\ ", "b ", "b  ", "*.key", "*.key/", ".env",
         "a/*", "a/b", "/a/b/", "a/*/b", "*/b",
         "**/a/b", "a/**", "!a/b", "x\\*y", "[[]x]", "a\\\\b", "**\\/b", "a\r", "*\r", "foo\\"]


def make_tree(root, rng):
    entries = []
    for _ in range(90):
        parts = [rng.choice(NAMES) for _ in range(rng.randint(1, 4))]
        path = "/".join(parts)
        full = os.path.join(root, path)
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if rng.random() < 0.3:
                os.makedirs(full, exist_ok=True)
            elif not os.path.lexists(full):
                open(full, "w").close()
        except (FileExistsError, NotADirectoryError):
            continue
    for base, dirs, files in os.walk(root):
        if ".git" in dirs:
            dirs.remove(".git")
        for name in dirs:
            entries.append(("d", os.path.relpath(os.path.join(base, name), root)))
        for name in files:
            entries.append(("f", os.path.relpath(os.path.join(base, name), root)))
    return [e for e in entries if e[1] != ".gitignore"]


def make_patterns(rng):
    lines = []
    for _ in range(rng.randint(1, 6)):
        if rng.random() < 0.3:
            lines.append(rng.choice(FIXED))
        else:
            lines.append(("!" if rng.random() < 0.2 else "")
                         + "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7))))
    return "\n".join(lines) + ("\n" if rng.random() < 0.8 else "")


def git_says(root, entries):
    feed = b"".join(os.fsencode(p) + b"\0" for _, p in entries)
    out = subprocess.run(["git", "-C", root, "check-ignore", "--no-index", "--stdin", "-z", "-v",
                          "-n"], input=feed,
                         stdout=subprocess.PIPE, check=False).stdout.split(b"\0")
    answers = []
    for i in range(len(entries)):
        pattern = out[i * 4 + 2]
        answers.append("1" if out[i * 4] and not pattern.startswith(b"!") else "0")
    return "".join(answers)


def ward_says(filter_program, patterns, entries):
    feed = b"".join(kind.encode() + b" " + os.fsencode(path) + b"\0" for kind, path in entries)
    return subprocess.run([filter_program, patterns], input=feed, stdout=subprocess.PIPE,
                          check=True).stdout.decode()


def main():
    filter_program, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(
        sys.argv) > 2 else 60
    seed = int(os.environ.get("SEED", "20240607"))
    rng = random.Random(seed)
    os.environ.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
                      XDG_CONFIG_HOME="/nonexistent")
    pairs = excluded = 0
    with tempfile.TemporaryDirectory(prefix="ward-ignore-") as root:
        subprocess.run(["git", "init", "-q", root], check=True)
        os.unlink(os.path.join(root, ".git/info/exclude"))
        entries = make_tree(root, rng)
        ignore_file = os.path.join(root, ".gitignore")
        for _ in range(rounds):
            text = make_patterns(rng)
            with open(ignore_file, "w", newline="") as f:
                f.write(text)
            git, ward = git_says(root, entries), ward_says(filter_program, ignore_file, entries)
            pairs += len(entries)
            excluded += git.count("1")
            for (kind, path), g, w in zip(entries, git, ward):
                if g != w:
                    sys.exit(f"seed {seed}: patterns {text!r}, path {kind} {path!r}: git says {g}, "
                             f"ward says {w}")
    print(f"{pairs} pairs, {excluded} excluded, no difference")


main()
