/*
 * Compiled code of a module. In: a plan whose command is a module. Out: a file of the store
 * (store.c) that holds native code of exactly these bytes, or none. Runs in the supervisor with the
 * user's rights: it reads the module to make its digest and parses nothing.
 *
 * Native code is run as it is, so only ward may provide it: it is made by compile.c of a private
 * copy whose digest is in its name, in a sandbox that sees nothing else, and lies in the state
 * directory, which no sandbox sees. ward-wasm makes the digest of what it reads again inside and
 * takes the code only if both agree: a module that changes in between is interpreted. What the name
 * of an entry covers is in key.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/wasm/compile.h"

#define MODULE_BYTES_MAX (256 << 20) /* larger ones are interpreted */

/* -- the module */

/* Opens what the sandbox will see at a path of its own: beneath the directory that is mounted
 * there, through no link that leaves it. */
static int open_inside(const struct plan *p, const char *path)
{
	const struct plan_mount *best = NULL;
	struct ward_err unused = { 0 };
	auto_fd dir = -1;
	const char *rest;

	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND && m->from_policy && !m->is_file &&
		    path_is_beneath(path, m->target) &&
		    (!best || strlen(m->target) > strlen(best->target)))
			best = m;
	}
	if (!best)
		return -ENOENT;
	rest = path + strlen(best->target);
	dir = open(best->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || *rest != '/'
		       ? -ENOENT
		       : path_open_beneath(dir, rest + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY,
					   &unused);
}

static int open_module(const struct plan *p)
{
	const char *name = p->spec->image_command
				   ? (p->image.command.len ? p->image.command.items[0] : NULL)
			   : p->spec->argv ? p->spec->argv[0]
					   : NULL;
	auto_free char *path = name ? path_join(p->spec->cwd, name) : NULL;
	int fd = path ? open_inside(p, path) : -ENOENT;
	struct stat st = { 0 };

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 8 ||
	    st.st_size > MODULE_BYTES_MAX) {
		close(fd);
		return st.st_size > MODULE_BYTES_MAX ? -EFBIG : -ENOTSUP;
	}
	return fd;
}

/* The digest of what is read from the file; to_fd gets a copy of it, -1: none does. -EILSEQ: it
 * does not begin as a module does. */
static int read_module(int fd, int to_fd, char ret_digest[SHA256_HEX])
{
	static const char head[8] = "\0asm\1\0\0";
	uint8_t bytes[65536], digest[SHA256_BYTES];
	struct sha256 sum;
	off_t at = 0;

	sha256_begin(&sum);
	for (;;) {
		ssize_t n = pread(fd, bytes, sizeof(bytes), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if (at + n > MODULE_BYTES_MAX)
			return -EFBIG;
		if (at == 0 &&
		    (n < (ssize_t)sizeof(head) || memcmp(bytes, head, sizeof(head)) != 0))
			return -EILSEQ;
		if (to_fd >= 0 && io_write_all(to_fd, bytes, (size_t)n) < 0)
			return -EIO;
		sha256_add(&sum, bytes, (size_t)n);
		at += n;
	}
	if (!at)
		return -EILSEQ;
	sha256_end(&sum, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret_digest + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

/* -- finding and making */

/* A private copy is what is hashed, named and compiled. */
static int make(const struct wasm_place *at, int module_fd, struct wasm_code *c,
		char ret_digest[SHA256_HEX], struct ward_err *e)
{
	auto_fd copy = memfd_create("ward-wasm-module", MFD_CLOEXEC);
	struct compile_job job = { .at = at,
				   .metered = at->plan->spec->policy.wasm_fuel != POLICY_NONE,
				   .code = c };
	int r;

	if (copy < 0)
		return ward_fail_errno(e, "cannot make a copy of the module");
	r = read_module(module_fd, copy, ret_digest);
	if (r == 0)
		r = wasm_name_code(at, ret_digest, c);
	if (r < 0)
		/* it has just changed, or gone: the runner says what is wrong with it */
		return 0;
	job.input_fd = copy;
	job.origin = ret_digest;
	r = lseek(copy, 0, SEEK_SET) < 0 ? -errno : compile_module(&job, e);
	if (r == -ENOTSUP) {
		strv_addf(&at->plan->notes,
			  "wasm: cannot compile the module ahead of time (%s): it is interpreted",
			  e->why);
		*e = (struct ward_err){ 0 };
		return 0;
	}
	return r < 0 ? r : 1;
}

static int look(const struct wasm_place *at, struct wasm_code *c, char ret_digest[SHA256_HEX],
		struct ward_err *e)
{
	struct strv *notes = &at->plan->notes;
	auto_fd module = open_module(at->plan);
	int r = module < 0 ? module : read_module(module, -1, ret_digest);

	if (r == 0)
		r = wasm_name_code(at, ret_digest, c);
	if (r == -EFBIG)
		strv_addf(notes,
			  "wasm: a module of more than %d MiB is not compiled ahead of time: it is "
			  "interpreted",
			  MODULE_BYTES_MAX >> 20);
	if (r < 0)
		return 0; /* not ours to say: the runner looks at it from inside */
	r = wasm_store_look(c);
	if (r == -ENOTSUP)
		strv_add(
			notes,
			"wasm: an earlier attempt to compile the module failed: it is interpreted");
	if (r != 0)
		return r < 0 ? 0 : 1;
	if (!at->plan->spec->starts) {
		strv_add(notes, "wasm: a start compiles the module first");
		return 0;
	}
	return make(at, module, c, ret_digest, e);
}

int wasm_find_code(const struct wasm_place *at, struct wasm_code *c, char **ret_path,
		   char ret_digest[SHA256_HEX], struct ward_err *e)
{
	int r = look(at, c, ret_digest, e);

	*ret_path = r > 0 ? path_join(c->dir, c->name) : NULL;
	return r > 0 && !*ret_path ? ward_fail(e, ENOMEM, "out of memory") : r < 0 ? r : 0;
}
