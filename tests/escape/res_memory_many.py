"""Takes more memory than allowed with many processes, each of which stays far below the limit.

layer: limits
control: without a sandbox all of them hold their share
"""
from harness.kernel_memory import holds

OPTIONS = ["--memory", "96M"]


def attack(a):
    reader, writer = os.pipe()
    for _ in range(8):
        if os.fork() == 0:
            block = bytearray(32 << 20)
            for offset in range(0, len(block), 4096):
                block[offset] = 1
            os.write(writer, b"x")
            time.sleep(5)
            os._exit(0)
    os.close(writer)
    held = 0
    while held < 8 and os.read(reader, 1):
        held += 1
    time.sleep(0.3)
    print("held:", held * 32, "MiB")
    sys.stdout.flush()
    os.kill(0, signal.SIGKILL)


escaped = holds(256)


def scene(s):
    s.prepare = __import__("os").setsid
