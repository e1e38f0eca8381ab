#!/usr/bin/env python3
"""Graphics processors inside: does PyTorch train there at the speed of outside? One interleaved
run; needs a GPU and a python3 with PyTorch.

  bench/gpu.py [--ward PATH] [--rounds N] [--steps N] [--ro DIR]... [--isolation ENGINE] [--no-limit
  NAME]...

Prints the devices inside, then steps a second outside and inside, each round, and the ratio of the
medians. Exit 1 when the inside is more than 2 % slower, or has another device than the policy
names.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ward", default=os.path.join(HERE, "..", "build", "src", "cli", "ward"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--ro", action="append", default=[])
    parser.add_argument("--python", default=subprocess.run(["sh", "-c", "command -v python3"],
                                                           capture_output=True,
                                                           text=True).stdout.strip())
    parser.add_argument("--no-limit", action="append", default=[],
                        help="a limit to lift: pids_limit")
    parser.add_argument("--isolation", default="native")
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="ward-gpu-")
    script = os.path.join(work, "train.py")
    with open(os.path.join(HERE, "gpu_train.py")) as source, open(script, "w") as copy:
        copy.write(source.read())
    sandbox = [args.ward, "run", "--isolation", args.isolation, "-w", work, "-C", work, "--gpus",
               "0", "--set", "resources.timeout_seconds=none", "--set",
               "resources.memory_limit=none"]
    for limit in args.no_limit:
        sandbox += ["--set", f"resources.{limit}=none"]
    for path in args.ro:
        sandbox += ["--ro", path]
    nodes = subprocess.run(sandbox + ["--", "sh", "-c",
                                      "cd /dev; for n in * */*; do test -c $n && echo $n; done | "
                                      "grep -v -x -E "
                                      "'null|zero|full|u?random|tty|pts/.*|console|ptmx' | sort"],
                           capture_output=True, text=True)
    print("devices inside:", " ".join(nodes.stdout.split()), nodes.stderr)
    places = {"outside": [], "inside": sandbox + ["--"]}
    rates = {name: [] for name in places}
    names = list(places)
    for _ in range(args.rounds):
        names.reverse()  # neither is always the second, on a processor that the first has warmed
        for name in names:
            prefix = places[name]
            done = subprocess.run(prefix + [args.python, script, str(args.steps)],
                                  capture_output=True, text=True, cwd=work)
            if done.returncode:
                sys.exit(f"{name}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
            rate, first, last, count, _ = done.stdout.split()
            rates[name].append(float(rate))
            print(f"{name:8} {rate} steps/s, loss {first} to {last}, {count} GPU(s)", flush=True)
    ratio = statistics.median(rates["inside"]) / statistics.median(rates["outside"])
    print(f"inside / outside: {ratio:.3f} (best "
          f"{max(rates['inside']) / max(rates['outside']):.3f})")
    allowed = {"nvidia0", "nvidiactl", "nvidia-uvm"}
    sys.exit(0 if ratio > 0.98 and set(nodes.stdout.split()) == allowed else 1)


if __name__ == "__main__":
    main()
