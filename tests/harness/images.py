"""Images for tests: tar archives entry by entry, OCI layouts and docker archives around them,
honest ones and crafted ones."""
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile

from harness import context

BUSYBOX = shutil.which("busybox")
DIR, LINK, HARD, CHAR, BLOCK, FIFO = (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
                                      tarfile.CHRTYPE, tarfile.BLKTYPE,
                                      tarfile.FIFOTYPE)


def tar(*entries, format=tarfile.PAX_FORMAT):
    """An archive. An entry: a name (an empty file), or (name, content) or (name, {members of
    TarInfo, "data": bytes})."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for entry in entries:
            name, what = entry if isinstance(entry, tuple) else (entry, b"")
            what = what if isinstance(what, dict) else {"data": what}
            info = tarfile.TarInfo(name)
            info.mode, info.mtime = 0o644, 1000000000
            data = what.get("data", b"")
            data = data.encode() if isinstance(data, str) else data
            for key, value in what.items():
                if key != "data":
                    setattr(info, key, value)
            if data:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def link(target):
    """An entry's members: a symbolic link."""
    return {"type": LINK, "linkname": target}


def hard(target):
    """An entry's members: a hard link."""
    return {"type": HARD, "linkname": target}


def directory(mode=0o755):
    """An entry's members: a directory."""
    return {"type": DIR, "mode": mode}


def digest(data):
    """The digest of bytes, in OCI's words."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def config(layers, wish=None, **more):
    """The configuration of an image of these archives."""
    return {"architecture": "amd64", "os": "linux", "config": wish or {},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}, **more}


class Layout:
    """An OCI layout being made; each part may be spoilt before write()."""

    def __init__(self, layers, wish=None, packed=gzip.compress,
                 media="application/vnd.oci.image.layer.v1.tar+gzip"):
        self.blobs = {}
        self.config = config(layers, wish)
        self.layers = [self.blob(packed(layer), media) for layer in layers]
        self.extra = {}

    def blob(self, data, media):
        """Adds a blob; its descriptor."""
        self.blobs[digest(data)] = data
        return {"mediaType": media, "digest": digest(data), "size": len(data)}

    def manifest(self):
        """The manifest's descriptor."""
        text = self.config if isinstance(self.config, bytes) else json.dumps(self.config).encode()
        parts = {"schemaVersion": 2,
                 "config": self.blob(text, "application/vnd.oci.image.config.v1+json"),
                 "layers": self.layers, **self.extra}
        return self.blob(json.dumps(parts).encode(), "application/vnd.oci.image.manifest.v1+json")

    def write(self, path, name=None, index=None):
        """Writes it below path."""
        entry = index or [{**self.manifest(),
                           **({"annotations": {"org.opencontainers.image.ref.name": name}}
                              if name else {})}]
        files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
                 "index.json": json.dumps({"schemaVersion": 2, "manifests": entry}).encode()}
        for key, data in self.blobs.items():
            files["blobs/sha256/" + key.split(":", 1)[1]] = data
        for file, data in files.items():
            os.makedirs(os.path.dirname(os.path.join(path, file)), exist_ok=True)
            with open(os.path.join(path, file), "wb") as f:
                f.write(data)
        return path


def docker(layers, tags=("made:1",), wish=None, entries=(), manifest=None):
    """docker's archive of one image, as docker save writes it."""
    text = json.dumps(config(layers, wish)).encode()
    name = hashlib.sha256(text).hexdigest() + ".json"
    parts = [(f"{i:064x}/layer.tar", layer) for i, layer in enumerate(layers)]
    listed = [{"Config": name, "RepoTags": list(tags), "Layers": [p[0] for p in parts]}]
    return tar(*parts, (name, text), *entries,
               ("manifest.json", json.dumps(manifest(listed) if manifest else listed)))


def busybox_root():
    """Entries of a small root that works: busybox and the names of its programs."""
    if not BUSYBOX:
        raise context.Skipped("busybox-static is not installed")
    with open(BUSYBOX, "rb") as f:
        program = f.read()
    names = ("sh", "ls", "cat", "id", "echo", "env", "pwd", "true", "touch", "mkdir", "grep",
             "head", "readlink", "stat", "find", "mount", "wc", "sleep")
    return [("bin", directory()), ("bin/busybox", {"data": program, "mode": 0o755}),
            *((f"bin/{n}", hard("bin/busybox")) for n in names),
            ("etc", directory()), ("etc/image-name", "MADE-OF-BUSYBOX\n"),
            ("tmp", directory(0o1777)), ("usr", directory()),
            ("usr/bin", link("../bin")), ("var", directory()), ("root", directory(0o700)),
            ("root/secret", {"data": "INSIDE-THE-IMAGE\n", "mode": 0o600})]


def put(t, name, data):
    """A file of the test's user."""
    path = os.path.join(t.directory, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def listed(t):
    """name -> row of `ward image ls --json`; images without a name by their digest."""
    rows = json.loads(t.ward("image", "ls", "--json").out)["images"]
    return {name: row for row in rows for name in (row["names"] or [row["digest"]])}


def root_of(t, row):
    """Where an image's files lie."""
    return os.path.join(t.state_dir, "images", row["digest"], "root")


def imported(t, path, *options):
    """Imports and returns what --json says."""
    r = t.ward("image", "import", path, "--json", *options)
    t.equal(r.rc, 0, r.err)
    return json.loads(r.out)
