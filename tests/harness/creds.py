"""What tests of secrets share: the secret itself, and who has it in memory."""
import os

SECRET = "sk-proj-ONLYxTHExSERVERxMAYxSEExTHISxVALUEx0123456789"


def secret_file(t):
    path = os.path.join(t.fresh_dir("secrets"), "key")
    with open(path, "w") as f:
        f.write(SECRET + "\n")
    os.chmod(path, 0o600)
    return path


def has(pid, text):
    """Whether the memory of a process has these bytes."""
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                area, rights = line.split()[:2]
                first, last = (int(x, 16) for x in area.split("-"))
                # a sanitizer's shadow is as large as that
                if "r" not in rights or "[v" in line or last - first > 1 << 28:
                    continue
                try:
                    memory.seek(first)
                    if text in memory.read(last - first):
                        return True
                except OSError:
                    pass
    except OSError:
        return None
    return False


def processes():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield int(pid), open(f"/proc/{pid}/comm").read().strip(), int(
                open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass


def below(root):
    """Every process that descends from one, with its name."""
    children = {}
    for pid, name, parent in processes():
        children.setdefault(parent, []).append((pid, name))
    todo, found = [root], []
    while todo:
        for pid, name in children.get(todo.pop(), []):
            found.append((pid, name))
            todo.append(pid)
    return found
