/*
 * The module as a file. In: a path in the sandbox, or standard input. Out: its bytes, or a message
 * and the exit code that a shell would give. The first eight bytes are looked at before the rest is
 * read, then its sections (kind.c); what is in them is the runtime's to read. The file belongs to a
 * program that writes in the workspace: it is opened once, without waiting, and what was read is
 * what is hashed and run; a runtime that is a program of its own gets it as a descriptor of a file
 * that has no name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "wasm/wasm.h"

static int say_kind(enum wasm_kind kind, const char *path)
{
	switch (kind) {
	case WASM_MODULE:
		return 0;
	case WASM_NATIVE:
		return say(EXIT_NOT_RUN, path,
			   "contains native code (a custom section 'wasmedge'), which ward never "
			   "runs: strip the section (llvm-objcopy --remove-section=wasmedge), or "
			   "use the module from before `wasmedge compile`");
	case WASM_DAMAGED:
		return say(EXIT_NOT_RUN, path,
			   "cannot be loaded: its sections are invalid or do not end where the "
			   "file does; it may be truncated or damaged");
	case WASM_LARGE:
		return say(EXIT_NOT_RUN, path,
			   "exceeds a limit of WebAssembly engines (1000000 types or functions, "
			   "7654321 bytes per function, 10000 custom sections): it is damaged, or "
			   "must be split");
	case WASM_COMPONENT:
		return say(
			EXIT_NOT_RUN, path,
			"a WebAssembly component, not a core module: build it for wasm32-wasip1");
	case WASM_NEWER:
		return say(EXIT_NOT_RUN, path, "a WebAssembly module of another version than 1");
	case WASM_TEXT:
		return say(EXIT_NOT_RUN, path,
			   "not a WebAssembly module (if it is its text format: wat2wasm makes a "
			   "module of it)");
	case WASM_NONE:
		break;
	}
	return say(EXIT_NOT_RUN, path,
		   "not a WebAssembly module: isolation wasm runs WASI modules; for other programs "
		   "use native");
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
			return say(EXIT_NOT_RUN, path, "cannot read it: %s", strerror(errno));
		if (got == 0)
			return 0;
		m->n += (size_t)got;
		if (m->n > WASM_MODULE_BYTES_MAX)
			return say(EXIT_NOT_RUN, path, "larger than %u bytes",
				   WASM_MODULE_BYTES_MAX);
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
		return -say(EXIT_NOT_FOUND, path,
			    "not found; name a module by its path, PATH is not searched");
	if (fd < 0)
		return -say(EXIT_NOT_RUN, path, "cannot be opened: %s", strerror(errno));
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return -say(EXIT_NOT_RUN, path, "not a regular file");
	}
	return fd;
}

/* By the first bytes: a large file that is none is not read at all. */
static enum wasm_kind look_at_head(int fd)
{
	uint8_t head[WASM_HEAD_BYTES];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	/* a pipe: it is looked at when it was read */
	return n < 0 ? WASM_MODULE : wasm_kind_of_head(head, (size_t)n);
}

static int read_file(const char *path, struct wasm_module *ret)
{
	struct stat st = { .st_size = 65536 };
	int fd = path ? open_module(path, &st) : STDIN_FILENO, r;

	*ret = (struct wasm_module){ 0 };
	if (fd < 0)
		return -fd;
	if (st.st_size > (off_t)WASM_MODULE_BYTES_MAX)
		st.st_size = (off_t)WASM_MODULE_BYTES_MAX;
	r = say_kind(look_at_head(fd), path ? path : "standard input");
	if (r == 0)
		r = read_rest(fd, path ? path : "standard input", (size_t)st.st_size, ret);
	if (path)
		close(fd);
	return r;
}

int module_read(const char *path, struct wasm_module *ret)
{
	int r = read_file(path, ret);

	return r ? r : say_kind(wasm_kind(ret->bytes, ret->n), path ? path : "standard input");
}

bool module_is(const struct wasm_module *m, const char *digest)
{
	char hex[SHA256_HEX];

	sha256_hex(m->bytes, m->n, hex);
	return strcmp(hex, digest) == 0;
}

int module_hand_over(const struct wasm_module *m, const char *name, char ret_path[WASM_FD_PATH])
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0400), kept;
	ssize_t n = 0;

	for (size_t done = 0; fd >= 0 && n >= 0 && done < m->n; done += (size_t)n) {
		n = write(fd, m->bytes + done, m->n - done);
		if (n < 0 && errno == EINTR)
			n = 0;
	}
	snprintf(ret_path, WASM_FD_PATH, "/proc/self/fd/%d", fd);
	/* stays open in the runtime, and cannot be written */
	kept = fd < 0 || n < 0 ? -1 : open(ret_path, O_RDONLY);
	if (kept < 0)
		return say(EXIT_OWN, name,
			   "cannot be kept for the runtime: %s; /tmp of the sandbox must have room "
			   "for it (resources.disk_limit, memory_limit)",
			   strerror(errno));
	close(fd);
	snprintf(ret_path, WASM_FD_PATH, "/proc/self/fd/%d", kept);
	return 0;
}
