/*
 * The names of the store's entries. In: what an entry was made of and for. Out: its name, which
 * covers everything that it depends on: the runtime's file by number and times (an update, or
 * another image's, is another one), ward-wasm, the image, ward's version and, for code, the
 * module's digest, the processor and whether instructions are counted. Runs in the supervisor;
 * reads no file.
 */
#include <cpuid.h>
#include <errno.h>
#include <sys/stat.h>

#include "engine/wasm/compile.h"

static void add_cpu(struct buf *key)
{
	static const struct {
		unsigned leaf, part;
		bool ids; /* ebx has the number of the processor that answers */
	} leaves[] = { { 0, 0, false },
		       { 1, 0, true },
		       { 7, 0, false },
		       { 7, 1, false },
		       { 0x80000001, 0, false } };
	unsigned a = 0, b = 0, c = 0, d = 0;

	buf_puts(key, "cpu");
	for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
		if (!__get_cpuid_count(leaves[i].leaf, leaves[i].part, &a, &b, &c, &d))
			continue;
		buf_printf(key, " %x.%x=%x,%x,%x,%x", leaves[i].leaf, leaves[i].part, a,
			   leaves[i].ids ? 0 : b, c, d);
	}
	buf_puts(key, "\n");
}

/* A file by its number and times: no program can give another file the same change time. */
static int add_file(struct buf *key, const char *what, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	buf_printf(key, "%s %s %llx:%llx %lld %lld.%09ld %lld.%09ld\n", what, path,
		   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		   (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		   (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	return 0;
}

static int finish(const struct wasm_place *at, struct buf *key, struct wasm_code *c)
{
	const struct plan *p = at->plan;
	const struct plan_image *image = p->own_system ? p->own_system->image : NULL;
	char hex[SHA256_HEX];

	buf_printf(key, "ward " WARD_VERSION "\nimage %s %llx:%llx\n",
		   p->image.root ? p->image.root : "host",
		   (unsigned long long)(image ? image->dev : 0),
		   (unsigned long long)(image ? image->ino : 0));
	if (add_file(key, "runtime", at->runtime->host_file) < 0 ||
	    add_file(key, "runner", at->runner) < 0)
		return -ENOENT;
	if (key->failed)
		return -ENOMEM;
	sha256_hex(key->data, key->len, hex);
	snprintf(c->name, sizeof(c->name), "%s.so", hex);
	return 0;
}

int wasm_name_code(const struct wasm_place *at, const char *digest, struct wasm_code *c)
{
	auto_buf key = { 0 };

	buf_printf(&key, "module %s\nmetered %d\n", digest,
		   at->plan->spec->policy.wasm_fuel != POLICY_NONE);
	add_cpu(&key);
	return finish(at, &key, c);
}
