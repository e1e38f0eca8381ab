/*
 * Compiled code of a module. In: a plan whose command is a module. Out: a file of the store (store.c) that holds native code of exactly these bytes, or none. Runs in the supervisor with the user's rights: it reads the module to make its digest and parses nothing.
 *
 * Native code is run as it is, so nobody but ward may bring it: it is made by compile.c of a private copy whose digest is in its name, in a sandbox that sees nothing else, and lies in the state directory, which no sandbox sees. ward-wasm makes the digest of what it reads again inside and takes the code only if
 * both agree: a module that changes in between is interpreted. The name of an entry also covers what the code depends on: the runtime's file by number and times (an update, or another image's, is another one), the image, the processor, whether instructions are counted, and ward's version.
 */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/wasm/compile.h"

#define MODULE_BYTES_MAX (256 << 20)	/* larger ones are interpreted */

/* -- the module */

/* Opens what the sandbox will see at a path of its own: beneath the directory that is mounted there, through no link that leaves it. */
static int open_inside(const struct plan *p, const char *path)
{
	const struct plan_mount *best = NULL;
	struct ward_err unused = { 0 };
	auto_fd dir = -1;
	const char *rest;

	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND && m->from_policy && !m->is_file && path_is_beneath(path, m->target) &&
		    (!best || strlen(m->target) > strlen(best->target)))
			best = m;
	}
	if (!best)
		return -ENOENT;
	rest = path + strlen(best->target);
	dir = open(best->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || *rest != '/' ? -ENOENT : path_open_beneath(dir, rest + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY, &unused);
}

static int open_module(const struct plan *p)
{
	const char *name = p->spec->image_command ? (p->image.command.len ? p->image.command.items[0] : NULL) : p->spec->argv ? p->spec->argv[0] : NULL;
	auto_free char *path = name ? path_join(p->spec->cwd, name) : NULL;
	int fd = path ? open_inside(p, path) : -ENOENT;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 8 || st.st_size > MODULE_BYTES_MAX) {
		close(fd);
		return -ENOTSUP;
	}
	return fd;
}

/* The digest of what is read from the file; to_fd gets a copy of it, -1: none does. -EILSEQ: it does not begin as a module does. */
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
		if (at == 0 && (n < (ssize_t)sizeof(head) || memcmp(bytes, head, sizeof(head)) != 0))
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

/* -- what it is stored under */

static void add_cpu(struct buf *key)
{
	static const struct {
		unsigned leaf, part;
		bool ids;	/* ebx has the number of the processor that answers */
	} leaves[] = { { 0, 0, false }, { 1, 0, true }, { 7, 0, false }, { 7, 1, false }, { 0x80000001, 0, false } };
	unsigned a = 0, b = 0, c = 0, d = 0;

	buf_puts(key, "cpu");
	for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
		if (!__get_cpuid_count(leaves[i].leaf, leaves[i].part, &a, &b, &c, &d))
			continue;
		buf_printf(key, " %x.%x=%x,%x,%x,%x", leaves[i].leaf, leaves[i].part, a, leaves[i].ids ? 0 : b, c, d);
	}
	buf_puts(key, "\n");
}

/* A file by its number and times: nobody can give another one the same change time. */
static int add_file(struct buf *key, const char *what, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	buf_printf(key, "%s %s %llx:%llx %lld %lld.%09ld %lld.%09ld\n", what, path, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, (long long)st.st_size,
		   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	return 0;
}

static int name_entry(const struct plan *p, const struct wasm_runtime *runtime, const char *runner, const char *digest, struct wasm_code *c)
{
	auto_buf key = { 0 };
	char hex[SHA256_HEX];

	buf_printf(&key, "ward " WARD_VERSION "\nmodule %s\nmetered %d\nimage %s %llx:%llx\n", digest, p->spec->policy.wasm_fuel != POLICY_NONE, p->image.root ? p->image.root : "host",
		   (unsigned long long)(p->own_system && p->own_system->image ? p->own_system->image->dev : 0),
		   (unsigned long long)(p->own_system && p->own_system->image ? p->own_system->image->ino : 0));
	add_cpu(&key);
	if (add_file(&key, "runtime", runtime->host_file) < 0 || add_file(&key, "runner", runner) < 0)
		return -ENOENT;
	if (key.failed)
		return -ENOMEM;
	sha256_hex(key.data, key.len, hex);
	snprintf(c->name, sizeof(c->name), "%s.so", hex);
	return 0;
}

/* -- finding and making */

/* A private copy is what is hashed, named and compiled. */
static int make(struct plan *p, const struct wasm_runtime *runtime, const char *runner, int module_fd, struct wasm_code *c, char ret_digest[SHA256_HEX], struct ward_err *e)
{
	auto_fd copy = memfd_create("ward-wasm-module", MFD_CLOEXEC);
	struct compile_job job = { .runtime = runtime, .runner = runner, .image_root = p->image.root, .metered = p->spec->policy.wasm_fuel != POLICY_NONE, .code = c, .progress = p->spec->progress };
	int r;

	if (copy < 0)
		return ward_fail_errno(e, "cannot make a copy of the module");
	r = read_module(module_fd, copy, ret_digest);
	if (r == 0)
		r = name_entry(p, runtime, runner, ret_digest, c);
	if (r < 0)
		return 0;	/* it has just changed, or gone: the runner says what is wrong with it */
	job.module_fd = copy;
	r = lseek(copy, 0, SEEK_SET) < 0 ? -errno : compile_module(&job, e);
	if (r == -ENOTSUP) {
		strv_addf(&p->notes, "wasm: the module could not be compiled ahead of time (%s): it is interpreted", e->why);
		*e = (struct ward_err){ 0 };
		return 0;
	}
	return r < 0 ? r : 1;
}

/* 1: there is code, under c->name; 0: there is none. */
static int look(struct plan *p, const struct wasm_runtime *runtime, const char *runner, struct wasm_code *c, char ret_digest[SHA256_HEX], struct ward_err *e)
{
	auto_fd module = open_module(p);
	int r = module < 0 ? module : read_module(module, -1, ret_digest);

	if (r == 0)
		r = name_entry(p, runtime, runner, ret_digest, c);
	if (r < 0)
		return 0;	/* not ours to say: the runner looks at it from inside */
	r = wasm_store_look(c);
	if (r == -ENOTSUP)
		strv_add(&p->notes, "wasm: the module could not be compiled ahead of time before: it is interpreted");
	if (r != 0)
		return r < 0 ? 0 : 1;
	if (!p->spec->starts) {
		strv_add(&p->notes, "wasm: a start compiles the module first");
		return 0;
	}
	return make(p, runtime, runner, module, c, ret_digest, e);
}

int wasm_find_code(struct plan *p, const struct wasm_runtime *runtime, char **ret_path, char ret_digest[SHA256_HEX], struct ward_err *e)
{
	struct wasm_code c = { .dir_fd = -1 };
	auto_free char *runner = NULL;
	int r;

	*ret_path = NULL;
	if (runtime->id != WASM_LIBRARY || !p->spec->policy.wasm_compile)
		return 0;
	r = wasm_runner_path(&runner, e);
	if (r == 0)
		r = wasm_store_open(&c, e);
	if (r == 0)
		r = look(p, runtime, runner, &c, ret_digest, e);
	if (r > 0) {
		*ret_path = path_join(c.dir, c.name);
		r = *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
	}
	wasm_store_close(&c);
	return r;
}
