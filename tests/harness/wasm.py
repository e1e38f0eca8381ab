"""What the tests of isolation wasm share: runtimes that this machine has, and modules."""
import os

from . import engines

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# a root directory with WasmEdge in it, made by tools/wasm_tree.sh
TREE = os.environ.get("WARD_WASM_TREE", os.path.join(ROOT, "build", "wasm-tree"))
DATA = os.path.join(ROOT, "tests", "data")

# what attacks that are modules have at hand; as programs, too
PRELUDE = r"""
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void began(void) { write(2, "[attack began]\n", 15); }

static void show(const char *path)
{
	char bytes[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n < 0)
		printf("%s: %s\n", path, strerror(errno));
	else
		fwrite(bytes, 1, (size_t)n, stdout);
	if (fd >= 0)
		close(fd);
}
"""


def on_host():
    """Whether the host itself has WasmEdge."""
    return os.path.exists("/usr/lib/x86_64-linux-gnu/libwasmedge.so.0")


def image():
    """The options that show the tree, where it is needed and there."""
    return () if on_host() or not os.path.exists(os.path.join(TREE, ".complete")) else (
        "--image", TREE)


def edge(t):
    """The options that have modules run by WasmEdge: the host's, or that of the tree."""
    if not on_host() and not image():
        t.skip(f"there is no WasmEdge here; tools/wasm_tree.sh {TREE} gets it")
    return ("--isolation", "wasm", "--set", "wasm.runtime=wasmedge", *image())


def node(t):
    """The options that have modules run by node."""
    if not os.path.exists("/usr/bin/node"):
        t.skip("there is no node here")
    return ("--isolation", "wasm", "--set", "wasm.runtime=node")


def interpreted(t, runtime=None):
    """The options that have a module run here, without waiting for its compilation; RUNTIME: by
    that one only."""
    if runtime == "wasmedge" or on_host() or image():
        return (*edge(t), "--set", "wasm.compile=false")
    return node(t)


def module(t, ws, name, source):
    """Compiles a C file of tests/data, or C text, into the workspace."""
    if source.endswith(".c"):
        with open(os.path.join(DATA, source)) as f:
            source = f.read()
    with open(engines.wasm_tool(t, source), "rb") as f:
        t.write(ws, {name: f.read()})
    return ws


def tools(t, files=None):
    """A workspace with both tools in it: conform.wasm and wasi.wasm."""
    ws = t.workspace(files)
    module(t, ws, "conform.wasm", "conform.c")
    return module(t, ws, "wasi.wasm", "wasi.c")
