#!/usr/bin/python3
"""What a run costs in a large repository, beside another build of ward.

In: --with DIR, another build directory (an older ward's, mostly); WARD_BUILD, or build/; --files N
in the work tree (50,000), --objects N in the repository (100,000), --loose N of them outside of
packs (0), --rounds N. Out: a table of processor time and wall time of whole runs, the median of
each, and their ratio: a run that does nothing, one that touches a thousand files, one that commits.
Runs of the two builds alternate, because other load changes with time. The exit status is 1 where
the processor time of the first two kinds is more than 30 % above the other build's.
"""
import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BOUND = 1.30
WHO = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
       for what, value in (("NAME", "bench"), ("EMAIL", "bench@example.org"))}
TOUCH = "for i in $(seq 0 999); do : >> d$((i % 50))/f$i; done"
COMMIT = "echo $$ >> d0/f0; git commit -qam more"
KINDS = {"true": ("true", True), "touches 1,000 files": (TOUCH, True),
         "commits": (COMMIT, False)}


def fast_import(files, objects):
    """The stream of a first commit with every file, and of commits that change one each."""
    out = []
    who = "bench <bench@example.org> 1700000000 +0000\n"

    def commit(mark, changes):
        out.append(f"commit refs/heads/main\nmark :{mark}\ncommitter {who}data 1\nc\n")
        out.extend(f"M 100644 inline {path}\ndata {len(text)}\n{text}\n" for path, text in changes)

    commit(1, [(f"d{i % 50}/f{i}", f"file {i}\n") for i in range(files)])
    # each such commit is a blob, two trees and itself
    for i in range(max(0, objects - files - 52) // 4):
        commit(i + 2, [(f"d{i % 50}/f{i % files}", f"change {i}\n")])
    return "".join(out)


def make_repository(ws, args):
    def git(*words, **options):
        subprocess.run(["git", *words], cwd=ws, check=True, text=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **WHO}, **options)

    git("init", "-q", "-b", "main", ".")
    git("config", "gc.auto", "0")
    git("fast-import", "--quiet", input=fast_import(args.files, args.objects - args.loose))
    git("reset", "-q", "--hard")
    for start in range(0, args.loose, 1000):
        # hash-object writes loose objects
        names = []
        for i in range(start, min(start + 1000, args.loose)):
            names.append(str(ws / f".git/loose{i - start}"))
            pathlib.Path(names[-1]).write_text(f"loose {i}\n", encoding="ascii")
        git("hash-object", "-w", "--stdin-paths", input="\n".join(names) + "\n")
        for name in names:
            os.unlink(name)
    git("update-index", "--refresh")


def run_once(build, base, ws, script):
    """Processor time and wall time of one run, in ms."""
    env = {**os.environ, **WHO, "WARD_STATE_DIR": str(base / f"state-{build.parent.name}")}
    words = [str(build / "src/cli/ward"), "run", *(f"--env={name}" for name in WHO), "--", "sh",
             "-c", script]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, cwd=ws, env=env, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used * 1000, wall * 1000


def compare(builds, base, ws, rounds):
    good = True
    print(f"{'':<22}{'processor, ms':>24}{'':>8}{'wall, ms':>24}")
    print(f"{'a run that':<22}{'other':>12}{'this':>12}{'ratio':>8}{'other':>12}{'this':>12}"
          f"{'ratio':>8}")
    for name, (script, bound) in KINDS.items():
        got = [[], []]
        for i in range(rounds + 1):
            for k, build in enumerate(builds):
                one = run_once(build, base, ws, script)
                if i:  # the first fills caches
                    got[k].append(one)
        cells, ratios = "", []
        for what in (0, 1):
            other, this = (statistics.median(g[what] for g in one) for one in got)
            ratios.append(this / other)
            cells += f"{other:>12.1f}{this:>12.1f}{this / other:>8.2f}"
        print(f"{name:<22}{cells}", flush=True)
        good &= not bound or ratios[0] <= BOUND
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--with", dest="other", required=True, type=pathlib.Path)
    parser.add_argument("--files", type=int, default=50000)
    parser.add_argument("--objects", type=int, default=100000)
    parser.add_argument("--loose", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--keep", type=pathlib.Path, help="where the repository is made and kept")
    args = parser.parse_args()
    this = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build")).resolve()
    base = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="ward-bench."))
    ws = base / "ws"
    try:
        if not ws.exists():
            ws.mkdir(parents=True)
            make_repository(ws, args)
        return 0 if compare((args.other.resolve(), this), base, ws, args.rounds) else 1
    finally:
        if not args.keep:
            shutil.rmtree(base)


if __name__ == "__main__":
    sys.exit(main())
