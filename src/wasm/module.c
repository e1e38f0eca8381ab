/*
 * The module as a file. In: a path in the sandbox, or standard input. Out: its bytes, or a message and the exit code that a shell would give. The first eight bytes and the names of sections are looked at (kind.c); the rest is the runtime's to read.
 * The file belongs to whoever writes in the workspace: it is opened once, without waiting, and what was read is what is hashed and run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/sha256.h"
#include "wasm/wasm.h"

static int say_kind(enum wasm_kind kind, const char *path)
{
	switch (kind) {
	case WASM_MODULE:
		return 0;
	case WASM_NATIVE:
		return say(EXIT_NOT_RUN, path, "brings native code (a custom section 'wasmedge'), which ward never runs: strip the section (llvm-objcopy --remove-section=wasmedge), or take the module as it was before `wasmedge compile`");
	case WASM_DAMAGED:
		return say(EXIT_NOT_RUN, path, "cannot be loaded: its sections do not end where the file does; it may be cut short or damaged");
	case WASM_COMPONENT:
		return say(EXIT_NOT_RUN, path, "a WebAssembly component, not a core module: build it for wasm32-wasip1");
	case WASM_NEWER:
		return say(EXIT_NOT_RUN, path, "a WebAssembly module of another version than 1");
	case WASM_TEXT:
		return say(EXIT_NOT_RUN, path, "not a WebAssembly module (if it is its text format: wat2wasm makes a module of it)");
	case WASM_NONE:
		break;
	}
	return say(EXIT_NOT_RUN, path, "not a WebAssembly module: isolation wasm runs WASI modules; for other programs take native");
}

/* Reads to the end of the file, but no more than is allowed. */
static int read_rest(int fd, const char *path, size_t hint, struct wasm_module *m)
{
	size_t room = hint + 1;

	m->bytes = malloc(room);
	while (m->bytes) {
		ssize_t got = read(fd, m->bytes + m->n, room - m->n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return say(EXIT_NOT_RUN, path, "cannot be read: %s", strerror(errno));
		if (got == 0)
			return 0;
		m->n += (size_t)got;
		if (m->n > WASM_MODULE_BYTES_MAX)
			return say(EXIT_NOT_RUN, path, "larger than %u bytes", WASM_MODULE_BYTES_MAX);
		if (m->n == room) {
			uint8_t *more = realloc(m->bytes, room * 2);

			if (!more)
				break;
			m->bytes = more;
			room *= 2;
		}
	}
	return say(EXIT_OWN, path, "out of memory");
}

static int open_module(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return -say(EXIT_NOT_FOUND, path, "not found; a module is named by its path, there is no search for it");
	if (fd < 0)
		return -say(EXIT_NOT_RUN, path, "cannot be opened: %s", strerror(errno));
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return -say(EXIT_NOT_RUN, path, "not a regular file");
	}
	return fd;
}

int file_read(const char *path, struct wasm_module *ret)
{
	struct stat st = { .st_size = 65536 };
	int fd = path ? open_module(path, &st) : STDIN_FILENO, r;

	*ret = (struct wasm_module){ 0 };
	if (fd < 0)
		return -fd;
	if (st.st_size > (off_t)WASM_MODULE_BYTES_MAX)
		st.st_size = (off_t)WASM_MODULE_BYTES_MAX;
	r = read_rest(fd, path ? path : "standard input", (size_t)st.st_size, ret);
	if (path)
		close(fd);
	return r;
}

int module_read(const char *path, struct wasm_module *ret)
{
	int r = file_read(path, ret);

	return r ? r : say_kind(wasm_kind(ret->bytes, ret->n), path ? path : "standard input");
}

bool module_is(const struct wasm_module *m, const char *digest)
{
	char hex[SHA256_HEX];

	sha256_hex(m->bytes, m->n, hex);
	return strcmp(hex, digest) == 0;
}
