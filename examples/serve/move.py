"""A program that was written for E2B's cloud. It moves to your own machine by two variables, and
nothing in it changes:

    E2B_API_URL=http://127.0.0.1:3000 E2B_SANDBOX_URL=http://127.0.0.1:3000 python3 move.py

E2B_API_KEY is what it was, with a key of ward serve as its value (ward serve --add-key NAME).
"""
import sys

from e2b import Sandbox


def grade(program, cases):
    """Runs a submitted program on each case: how many outputs are right."""
    right = 0
    with Sandbox.create(metadata={"job": "grading"}) as sandbox:
        sandbox.files.write("/home/user/submitted.py", program)
        for given, expected in cases:
            sandbox.files.write("/home/user/input.txt", given)
            done = sandbox.commands.run("python3 submitted.py < input.txt || true", timeout=10)
            right += done.stdout.strip() == expected
    return right


if __name__ == "__main__":
    PROGRAM = "print(input()[::-1])\n"
    CASES = [("abc", "cba"), ("ward", "draw"), ("level", "wrong")]
    print(f"{grade(PROGRAM, CASES)} of {len(CASES)} right")
    sys.exit(0)
