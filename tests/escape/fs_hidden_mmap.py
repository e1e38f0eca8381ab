"""Reads a file that .aiignore names without read(2): mmap, sendfile, copy_file_range, splice,
execution.

layer: mount namespace
control: the same user without a sandbox does it
"""


def scene(s):
    s.t.write(s.ws, {".aiignore": "*.key\n", "secret.key": s.token})


def attack(a):
    import mmap
    size = 29

    def open_it():
        return os.open("secret.key", os.O_RDONLY)

    def mapped():
        with mmap.mmap(open_it(), size, prot=mmap.PROT_READ) as m:
            print(m[:].decode())

    def sent():
        out = os.open("out1", os.O_RDWR | os.O_CREAT)
        os.sendfile(out, open_it(), 0, size)
        print(slurp("out1"))

    def copied():
        out = os.open("out2", os.O_RDWR | os.O_CREAT)
        os.copy_file_range(open_it(), out, size)
        print(slurp("out2"))

    def spliced():
        r, w = os.pipe()
        os.splice(open_it(), w, size)
        print(os.read(r, 100).decode())
    for way in (mapped, sent, copied, spliced):
        attempt(way)
