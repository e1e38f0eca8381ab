"""The stock SDK of E2B against ward serve. Nothing in it is ward's.

    ward serve --dev            # prints the variables; set them here
    pip install e2b
    python3 quickstart.py
"""
from e2b import Sandbox

sandbox = Sandbox.create(timeout=120, envs={"NAME": "ward"})
try:
    print(sandbox.commands.run('echo "hello from $NAME"').stdout, end="")

    sandbox.files.write("sum.py", "import sys\nprint(sum(int(line) for line in sys.stdin))\n")
    sandbox.files.write("numbers.txt", "20\n22\n")
    print("sum:", sandbox.commands.run("python3 sum.py < numbers.txt").stdout, end="")

    # the network is what the template's policy grants: without one, nothing
    reached = sandbox.commands.run("cat < /dev/tcp/192.0.2.1/80 || echo no network")
    print(reached.stdout, end="")
finally:
    sandbox.kill()
