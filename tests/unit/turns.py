#!/usr/bin/python3
"""Which sanitized tests run in which turn: over six turns each test as root and as the user
exactly once, over two turns each attack so; a test for one of them has the same turns."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness import host, runner	# noqa: E402

BOTH = ("root", "user")
NAMES = [f"run/test_{i}.py::test_it" for i in range(300)]
ATTACKS = [f"escape/attack_{i}.py" for i in range(300)]


def turns(names, who, numbers):
    """{name: who runs it, in the order of the turns}"""
    ran = {name: [] for name in names}
    for host.TURN in numbers:
        for name in names:
            ran[name] += runner.in_turn(name, who)
    return ran


def main():
    wrong = []
    for start in (0, 1, 1000):
        six = range(start, start + runner.TURNS)
        for who in (BOTH, ("root",), ("user",)):
            wrong += [f"{name}: {ran} in turns {start} to {six[-1]}, not once as {who}"
                      for name, ran in turns(NAMES, who, six).items() if sorted(ran) != [*who]]
        wrong += [f"{name}: {ran} in turns {start} and {start + 1}"
                  for name, ran in turns(ATTACKS, BOTH, six[:2]).items()
                  if sorted(ran) != [*BOTH]]
        wrong += [f"{name}: left out for the user alone" for name, ran in
                  turns(ATTACKS, ("user",), six[:1]).items() if ran != ["user"]]
        share = sum(map(len, turns(NAMES, BOTH, six[:1]).values())) / (2 * len(NAMES))
        wrong += [f"turn {start} has {share:.2f} of all, not a sixth"] * (not 0.12 < share < 0.22)
    print("\n".join(wrong[:20]))
    print(f"{0 if wrong else 1} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
