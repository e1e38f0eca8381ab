"""Crafted archives: each is refused with the reason, or unpacked in a way that does no harm;
nothing outside changes, and the store stays clean."""
import gzip
import hashlib
import io
import json
import os
import re
import stat
import tarfile

from harness import by_turns, timeout
from harness.images import BLOCK, CHAR, FIFO, directory, docker, hard, Layout, link, put, tar

OUT = "/OUTSIDE-DIRECTORY"	# replaced by a directory of the test's


def pax(name, **headers):
    """One file whose extended header says more than its plain one."""
    return (name, {"data": b"x", "pax_headers": headers})


def bomb(size):
    """A file of zeros, compressed."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed:
        info = tarfile.TarInfo("zeros")
        info.size = size
        packed.write(info.tobuf())
        packed.write(bytes(size))
        packed.write(bytes(1024))
    return out.getvalue()


def claims(size):
    """A header that claims a size, and nothing behind it."""
    info = tarfile.TarInfo("claim")
    info.size = size
    return info.tobuf(format=tarfile.GNU_FORMAT) + bytes(1024)


def sparse(size):
    """GNU's old way: a huge file that is one hole."""
    block = bytearray(tarfile.TarInfo("hole").tobuf(format=tarfile.GNU_FORMAT))
    block[156:157] = b"S"
    block[386:410] = b"%011o\0%011o\0" % (size, 0)
    block[483:495] = (b"%011o\0" % size) if size < 8 ** 11 else b"\x80" + size.to_bytes(11, "big")
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(1024)


def extended(name, data=b"x", **records):
    """A file behind an extended header that is written by hand: tarfile refuses to write some of
    them."""
    body = b""
    for key, value in records.items():
        line = b" %s=%s\n" % (key.encode(), value)
        size = len(line) + 1
        while len(str(size)) + len(line) != size:
            size += 1
        body += str(size).encode() + line
    return header("header", len(body),
                  b"x") + body + bytes(-len(body) % 512) + header(name,
                                                                  len(data)) + data + bytes(
                                                                      -len(data)
                                                                      % 512) + bytes(1024)


def header(name, size, kind=b"0"):
    """A plain header alone."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(format=tarfile.GNU_FORMAT)


def holes(first, **records):
    """GNU's newest way to say where a sparse file has bytes: in the first block of its data."""
    return extended("hole", first.ljust(512, b"\0") + b"x" * 512,
                    **{"GNU.sparse." + key: value for key, value in records.items()})


def deep(*more):
    """Directories in each other, as links make them: each name is short, the tree is thousands
    deep."""
    parts = "/".join("d" * 100)
    entries = [(parts, directory()), ("a0", link(parts))]
    for i in range(14):
        entries += [(f"a{i}/{parts}", directory()), (f"a{i + 1}", link(f"a{i}/{parts}"))]
    return tar(*entries, *more)


WHOLE = tar(("file", "content" * 200))
OLDER = tar(("l", link(OUT)), ("d/x", "x"), ("keep", "k"))
DEEP = "/".join("d" * 3 for _ in range(200))

# name, archive, what the refusal says
REFUSED = [
    ("up", tar("../escape"), "leads upwards"),
    ("up in the middle", tar("a/../../escape"), "leads upwards"),
    ("up by an extended header", tar(pax("harmless", path="../escape")), "leads upwards"),
    ("up by GNU's long name", tar("../" * 40 + "escape" * 10, format=tarfile.GNU_FORMAT),
     "leads upwards"),
    ("absolute", tar(("/etc/cron.d/x", "x")), "is absolute"),
    ("absolute by an extended header", tar(pax("harmless", path=OUT + "/x")), "is absolute"),
    ("through a link to the outside", tar(("l", link(OUT)), ("l/new", "x")), "leads nowhere"),
    ("through a chain of links", tar(("a", link("b")), ("b", link(OUT)), ("a/new", "x")),
     "leads nowhere"),
    ("through links in a circle", tar(("a", link("b")), ("b", link("a")), ("a/new", "x")),
     "circular link"),
    ("a directory turned into a link", tar(("d/x", "x"), ("d", link(OUT)), ("d/new", "x")),
     "leads nowhere"),
    ("a file as a directory", tar(("a", "x"), ("a/b", "x")), "is a file"),
    ("hard link, absolute", tar(("h", hard("/etc/passwd"))), "is absolute"),
    ("hard link upwards", tar(("h", hard("../../../../etc/passwd"))), "leads upwards"),
    ("hard link through a link", tar(("l", link("/etc")), ("h", hard("l/passwd"))),
     "does not have"),
    ("hard link to nothing", tar(("h", hard("nothing"))), "does not have"),
    ("hard link to itself", tar(("h", "x"), ("h", hard("h"))), "leads to itself"),
    ("hard link to a directory", tar(("d", directory()), ("h", hard("d"))), "is a directory"),
    ("hard link to the root", tar(("h", hard("."))), "root itself"),
    ("whiteout of ..", tar(".wh..."), "whiteout of an invalid name"),
    ("whiteout of .", tar("a/.wh.."), "whiteout of an invalid name"),
    ("whiteout of nothing", tar(".wh."), "whiteout of an invalid name"),
    ("a directory named as a whiteout", tar(".wh.x/y"), "name of a whiteout"),
    ("the root as a link", tar(("./", link(OUT))), "root is not a directory"),
    ("a link to nothing", tar(("l", link(""))), "leads to nothing"),
    ("a link to too much", tar(("l", link("x" * 5000))), "longer than 4095"),
    ("a long name", tar("x" * 300), "longer than 255"),
    ("a long path", tar("/".join(["y" * 200] * 22)), "longer than 4095"),
    ("deep directories", tar(DEEP), "128 directories deep"),
    ("a claim of a tebibyte", claims(1 << 40), "more than"),
    ("a claim of all there is", claims((1 << 62) + 5), "more than|tar archive"),
    ("a hole of eight exbibytes", sparse((1 << 63) - 1), "more than|tar archive|negative"),
    ("a hole of a tebibyte", sparse(1 << 40), "more than"),
    ("a bomb of size", bomb(100 << 20), "more than 67108864 bytes"),
    ("a bomb of number", tar(*(f"f{i}" for i in range(2200))), "more than 2000 files"),
    ("a bomb of directories", tar(*(f"a{i}/" + "/".join("b" * 100) + "/f" for i in range(30))),
     "more than 2000 files"),
    ("a size beyond all numbers", extended("f", size=b"9" * 30), "overflow"),
    ("a size below zero", extended("f", size=b"-5"), "negative"),
    ("a header of a gibibyte", header("h", 1 << 30, b"x") + bytes(4096), "too large"),
    ("a name of two gibibytes", header("././@LongLink", (1 << 31) - 1, b"L") + bytes(4096),
     "too large"),
    ("a sparse file upwards", holes(b"0\n", major=b"1", minor=b"0", name=b"../../up",
                                    realsize=b"10"), "leads upwards"),
    ("a sparse file of all there is", holes(b"1\n0\n1\n", major=b"1", minor=b"0", name=b"s",
                                            realsize=b"%d" % ((1 << 63) - 1)), "more than"),
    ("bytes behind a sparse file", holes(b"1\n9223372036854775800\n100\n", major=b"1", minor=b"0",
                                         name=b"s", realsize=b"10"),
     "tar archive|longer than its header"),
    ("bytes before a sparse file", holes(b"1\n-5\n10\n", major=b"1", minor=b"0", name=b"s",
                                         realsize=b"10"), "tar archive|longer than its header"),
    ("a bomb in parts", gzip.compress(bytes(8 << 20), 1) * 20, "exceeds the maximum size"),
    ("deep by links", deep("../escape"), "leads upwards"),
    ("cut off in a file", WHOLE[:900], "tar archive"),
    ("cut off behind a file", WHOLE[:512 + 1536], "cut off"),
    ("compressed and cut off", gzip.compress(WHOLE)[:-30], "tar archive|decompress"),
    ("compressed and damaged", gzip.compress(os.urandom(5000))[:2000] + bytes(range(256)) * 4,
     "tar archive|decompress"),
    ("compressed twice", gzip.compress(gzip.compress(WHOLE)), "more than once"),
    ("a window of two gibibytes", b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00" + bytes(64),
     "tar archive|decompress"),
    ("no archive", b"#!/bin/sh\necho no\n" * 100, "tar archive"),
    ("empty", b"", "empty|tar archive"),
    ("only zeros are fine, a text of NULs is not", b"\0" * 100 + b"x" * 1000,
     "tar archive|cut off"),
    ("a name that writes to terminals", tar("\x1b]0;owned\x07\x1b[2J/../x"), "leads upwards"),
    ("docker: a layer elsewhere",
     docker([WHOLE], manifest=lambda m: [{**m[0], "Layers": ["../../../../etc/passwd"]}]),
     "leads upwards"),
    ("docker: a configuration elsewhere",
     docker([WHOLE], manifest=lambda m: [{**m[0], "Config": "/etc/passwd"}]), "is absolute"),
    ("docker: a layer that is a link", docker([], entries=[("x/layer.tar", link("/etc/passwd"))],
                                              manifest=lambda m: [{**m[0],
                                                                   "Layers": ["x/layer.tar"]}]),
     "cannot open|layers"),
    ("docker: another layer", docker([WHOLE], entries=[("other.tar", tar("evil"))],
                                     manifest=lambda m: [{**m[0], "Layers": ["other.tar"]}]),
     "content has the digest"),
    ("docker: too many layers",
     docker([WHOLE], manifest=lambda m: [{**m[0], "Layers": m[0]["Layers"] * 2}]), "has 2 layers"),
    ("docker: two images", docker([WHOLE], manifest=lambda m: m * 2), "holds 2 images"),
    ("docker: no list", docker([WHOLE], manifest=lambda m: {"Config": 7}), "manifest.json"),
    ("docker: numbers for names", docker([WHOLE], manifest=lambda m: [{**m[0], "Layers": [1, 2]}]),
     "not a string"),
    ("docker: a list in a list",
     docker([WHOLE], manifest=lambda m: json.loads("[" * 30 + "]" * 30)), "manifest.json"),
]


def renamed(layout, old, data):
    """A blob with another content than its name says."""
    layout.blobs[old["digest"]] = data


def nest(layout, depth):
    """An index in an index in an index."""
    entry = layout.manifest()
    for _ in range(depth):
        entry = layout.blob(json.dumps({"manifests": [entry]}).encode(),
                            "application/vnd.oci.image.index.v1+json")
    return [entry]


LAYOUTS = [
    ("a layer with another content", lambda o: renamed(o, o.layers[0], gzip.compress(tar("evil"))),
     "digest|bytes, but its manifest"),
    ("a layer of the right length",
     lambda o: renamed(o, o.layers[0], bytes(len(o.blobs[o.layers[0]["digest"]]))),
     "digest|tar archive"),
    ("a layer longer than said", lambda o: o.layers[0].update(size=20),
     "longer than|its manifest says|tar archive"),
    ("a layer shorter than said", lambda o: o.layers[0].update(size=10 ** 6), "its manifest says"),
    ("another content than configured",
     lambda o: o.config["rootfs"].update(diff_ids=["sha256:" + "0" * 64]),
     "content has the digest"),
    ("fewer contents than layers", lambda o: o.config["rootfs"].update(diff_ids=[]),
     "its configuration names 0"),
    ("a digest with a path",
     lambda o: o.layers[0].update(digest="sha256:../../../../../etc/passwd"), "not of the form"),
    ("a digest of another kind", lambda o: o.layers[0].update(digest="sha512:" + "0" * 128),
     "not of the form"),
    ("a layer to be had elsewhere",
     lambda o: o.layers[0].update(
         mediaType="application/vnd.oci.image.layer.nondistributable.v1.tar"), "does not unpack"),
    ("a size that is text", lambda o: o.layers[0].update(size="12"), "not a number"),
    ("a size below zero", lambda o: o.layers[0].update(size=-1), "not a number"),
    ("too many layers", lambda o: o.extra.update(layers=o.layers * 600), "at most 512"),
    ("a large manifest", lambda o: o.extra.update(annotations={"a": "x" * 1100000}),
     "more than 1 MiB"),
    ("a configuration of text", lambda o: setattr(o, "config", b"not json"), "configuration"),
    ("a deep configuration", lambda o: setattr(o, "config", b'{"a":' * 500 + b"1" + b"}" * 500),
     "levels deep|configuration"),
    ("another machine's", lambda o: o.config.update(architecture="arm64"), "arm64"),
    ("a variable without a value", lambda o: o.config.update(config={"Env": ["NOTHING"]}),
     "NAME=VALUE"),
    ("a command of numbers", lambda o: o.config.update(config={"Cmd": [1]}), "not a string"),
    ("indexes in each other", lambda o: nest(o, 6), "nested indexes"),
    ("an index for nobody",
     lambda o: [{**o.manifest(), "platform": {"os": "plan9", "architecture": "mips"}}],
     "no image for linux"),
    ("two images", lambda o: [o.manifest(), o.manifest()], "holds 2 images"),
]


def outside_of(t):
    """A directory whose path has the length of OUT, with a file in it."""
    path = "/tmp/" + hashlib.sha256(t.directory.encode()).hexdigest()[:len(OUT) - 5]
    os.mkdir(path, 0o755)
    t.defer(os.rmdir, path)
    t.defer(os.unlink, path + "/CANARY")
    with open(path + "/CANARY", "w") as f:
        f.write("UNTOUCHED")
    return path


def fixed(data, outside):
    """The archive with the right checksums after the replacement."""
    if OUT.encode() not in data:
        return data
    out = bytearray(data.replace(OUT.encode(), outside.encode()))
    for at in range(0, len(out) - 511, 512):
        if out[at + 257:at + 262] == b"ustar":
            out[at + 148:at + 156] = b"        "
            out[at + 148:at + 156] = b"%06o\0 " % sum(out[at:at + 512])
    return bytes(out)


def clean(t, outside):
    """Nothing came into the store, nothing outside has changed."""
    t.equal(os.listdir(outside), ["CANARY"], "outside")
    t.equal(t.read(outside, "CANARY"), "UNTOUCHED", "outside")
    store = os.path.join(t.state_dir, "images")
    t.equal([n for n in os.listdir(store) if n.startswith("work-") or len(n) == 64], [],
            "the store")


@by_turns
@timeout(90)
def test_hostile_archives_are_refused(t):
    outside = outside_of(t)
    for name, data, why in REFUSED:
        path = put(t, "hostile", fixed(data, outside))
        r = t.ward("image", "import", path, "--max-size", "64Mi", "--max-files", "2000",
                   wrap=("prlimit", "--nofile=256"))
        t.check(r.rc == 125 and re.search(why, r.err), f"{name}: exit {r.rc}, {r.err!r} {r.out!r}")
        t.check("\x1b" not in r.err and "\x07" not in r.err, f"{name}: {r.err!r}")
        t.check("ended unexpectedly" not in r.err, f"{name}: {r.err}")
        clean(t, outside)


@timeout(90)
def test_hostile_layouts_are_refused(t):
    outside = outside_of(t)
    for name, change, why in LAYOUTS:
        layout = Layout([WHOLE])
        index = change(layout)
        path = layout.write(t.fresh_dir("layout"), index=index if isinstance(index, list) else None)
        r = t.ward("image", "import", path)
        t.check(r.rc == 125 and re.search(why, r.err), f"{name}: exit {r.rc}, {r.err!r} {r.out!r}")
        clean(t, outside)
    layout = Layout([WHOLE])
    path = layout.write(t.fresh_dir("layout"))
    empty = Layout([bytes(1 << 20)] * 3).write(t.fresh_dir("layout"))
    r = t.ward("image", "import", empty, "--max-size", "1Mi", "--max-files", "1")
    t.check(r.rc == 125 and "exceeds the maximum size" in r.err, f"layers that only take time: {r}")
    blob = os.path.join(path, "blobs/sha256", layout.layers[0]["digest"].split(":")[1])
    os.rename(blob, os.path.join(t.directory, "elsewhere"))
    os.symlink(os.path.join(t.directory, "elsewhere"), blob)
    r = t.ward("image", "import", path)
    t.check(r.rc == 125 and "cannot open" in r.err, f"a blob that is a link to the outside: {r}")


def unpacked(t, *layers):
    """Imports layers and returns the root; it is removed again by the caller's next."""
    r = t.ward("image", "import", put(t, "contained", docker(list(layers))), "--json", "--name",
               "contained")
    t.equal(r.rc, 0, r.err)
    return json.loads(r.out), os.path.join(t.state_dir, "images", json.loads(r.out)["digest"],
                                           "root")


def test_hostile_entries_are_contained(t):
    outside = outside_of(t)

    def made(*layers):
        result, root = unpacked(t, *(fixed(layer, outside) for layer in layers))
        t.equal((os.listdir(outside), t.read(outside, "CANARY")), (["CANARY"], "UNTOUCHED"),
                "outside")
        return result, root
    # written in place of a link, not through it
    _, root = made(tar(("f", link(OUT + "/CANARY")), ("f", "replaced")))
    t.equal((os.path.islink(root + "/f"), t.read(root, "f")), (False, "replaced"))
    _, root = made(tar(("l", link(OUT + "/CANARY")), ("h", hard("l")), ("h", "replaced")))
    t.equal((os.readlink(root + "/l"), t.read(root, "h")), (outside + "/CANARY", "replaced"))
    # upwards within the root is the root
    _, root = made(tar(("l", link("../../../../..")), ("l/inside", "x"), ("etc/x", "x"),
                       ("m", link("/etc")), ("m/y", "y")))
    t.equal((t.read(root, "inside"), t.read(root, "etc/y")), ("x", "y"))
    # whiteouts and opaque marks through a link take nothing outside away
    for mark in ("l/.wh.CANARY", "l/.wh..wh..opq"):
        made(OLDER, tar(mark))
    _, root = made(OLDER, tar(".wh.l", "d/.wh..wh..opq", ("d/y", "y")))
    t.equal(sorted(os.listdir(root)), ["d", "keep"])
    t.equal(os.listdir(root + "/d"), ["y"])
    _, root = made(OLDER, tar(("new", "n"), ".wh..wh..opq"))
    t.equal(os.listdir(root), ["new"], "an opaque root keeps what is its own")
    _, root = made(tar(("same", "1"), ".wh.same"))
    t.equal(t.read(root, "same"), "1", "a whiteout is for older layers")
    # devices, pipes, set-id bits, capabilities
    result, root = made(tar(("dev/sda", {"type": BLOCK, "devmajor": 8}),
                            ("dev/null", {"type": CHAR, "devmajor": 1, "devminor": 3}),
                            ("p", {"type": FIFO}),
                            ("su", {"data": "x", "mode": 0o6755}), ("sd", directory(0o2777)),
                            pax("cap", **{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"})))
    t.equal((result["skipped"], result["set_id_dropped"]), (3, 2))
    t.equal(sorted(os.listdir(root)), ["cap", "sd", "su"])
    t.equal((oct(os.stat(root + "/su").st_mode), oct(os.stat(root + "/sd").st_mode)),
            ("0o100755", "0o40755"))
    t.equal(os.listxattr(root + "/cap"), [], "attributes")
    # odd but harmless
    _, root = made(tar(("old", {"data": "x", "mtime": -10 ** 10}),
                       ("new", {"data": "x", "mtime": 10 ** 12}), ("twice", "1"), ("twice", "2"),
                       ("a\nb\x1b", "x"), ("d", "x"), ("d", directory()), ("d/e", "x")))
    t.equal((t.read(root, "twice"), t.read(root, "d/e")), ("2", "x"))
    _, root = made(sparse(1 << 20))
    t.equal((os.stat(root + "/hole").st_size, os.stat(root + "/hole").st_blocks < 64),
            (1 << 20, True), "a hole stays one")
    t.equal(stat.S_IMODE(os.stat(root).st_mode), 0o755)
    # too deep for a descriptor each: what is older goes, and so does the image
    r = t.ward("image", "import", put(t, "deep", docker([deep(), tar(".wh.d")])), "--name", "deep",
               wrap=("prlimit", "--nofile=256"))
    t.equal(r.rc, 0, r.err)
    r = t.ward("image", "rm", "deep", wrap=("prlimit", "--nofile=256"))
    t.equal((r.rc, [n for n in os.listdir(os.path.join(t.state_dir, "images"))
                    if n.startswith("work-")]), (0, []), r.err)


@by_turns
@timeout(90)
def test_marks_that_come_again_cost_nothing(t):
    """Each one would look at everything in its directory: an archive of kilobytes, an import of
    hours."""
    files = [f"d/{i}" for i in range(4000)]
    for mark in ("d/.wh..wh..opq", ".wh.d"):
        r = t.ward("image", "import",
                   put(t, "marks", docker([tar(("d/older", "x")), tar(*files, *([mark] * 4000))])),
                   "--json", timeout=20)
        t.equal(r.rc, 0, r.err)
        root = os.path.join(t.state_dir, "images", json.loads(r.out)["digest"], "root")
        t.equal((len(os.listdir(root + "/d")), os.path.exists(root + "/d/older")),
                (4000, False), mark)
