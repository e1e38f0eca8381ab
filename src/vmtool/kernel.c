/*
 * A kernel for guests. In: the host's /boot, a Debian package, or apt. Out: a bzImage, the modules
 * that belong to it, and the uncompressed kernel, which the monitor starts directly: unpacking it
 * in an emulated guest would take seconds. Nothing is installed and no root is needed; apt checks
 * the signatures of what it fetches. What the newest of several is, is decided by the numbers in
 * their names.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "base/path.h"
#include "vmtool/tool.h"

#define KERNEL_BYTES_MAX (256u * 1024 * 1024)

void tool_kernel_clear(struct tool_kernel *k)
{
	free(k->image);
	free(k->modules);
	*k = (struct tool_kernel){ 0 };
}

/* Compares names by their numbers, one after the other: 6.12.9 is older than 6.12.115. */
static int compare_versions(const char *a, const char *b)
{
	for (;;) {
		unsigned long x, y;

		while (*a && !isdigit((unsigned char)*a))
			a++;
		while (*b && !isdigit((unsigned char)*b))
			b++;
		if (!*a || !*b)
			return (*a != '\0') - (*b != '\0');
		x = strtoul(a, NULL, 10);
		y = strtoul(b, NULL, 10);
		if (x != y)
			return x < y ? -1 : 1;
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
	}
}

static int set_kernel(struct tool_kernel *k, const char *root, const char *release,
		      struct ward_err *e)
{
	if (strlen(release) >= sizeof(k->release) ||
	    asprintf(&k->image, "%s/boot/vmlinuz-%s", root, release) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	snprintf(k->release, sizeof(k->release), "%s", release);
	if (asprintf(&k->modules, "%s/lib/modules/%s", root, release) < 0 ||
	    access(k->modules, R_OK) < 0) {
		free(k->modules);
		if (asprintf(&k->modules, "%s/usr/lib/modules/%s", root, release) < 0)
			k->modules = NULL;
	}
	if (!k->modules || access(k->modules, R_OK) < 0 || access(k->image, R_OK) < 0)
		return ward_fail(e, ENOENT,
				 "%s: the kernel %s cannot be read, or its modules cannot",
				 *root ? root : "/", release);
	return 0;
}

/* The newest kernel in ROOT/boot that can be read and has its modules. */
static int find_in(const char *root, struct tool_kernel *ret, struct ward_err *e)
{
	auto_free char *boot = NULL;
	auto_dir d = NULL;
	char best[64] = "";

	if (asprintf(&boot, "%s/boot", root) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	d = opendir(boot);
	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
		const char *release = entry->d_name + strlen("vmlinuz-");
		struct tool_kernel k = { 0 };
		struct ward_err unused = { 0 };

		if (strncmp(entry->d_name, "vmlinuz-", strlen("vmlinuz-")) != 0 ||
		    strlen(release) >= sizeof(best))
			continue;
		if (set_kernel(&k, root, release, &unused) == 0 &&
		    (!*best || compare_versions(best, release) < 0))
			snprintf(best, sizeof(best), "%s", release);
		tool_kernel_clear(&k);
	}
	if (!*best)
		return ward_fail(e, ENOENT, "there is no readable kernel in %s", boot);
	return set_kernel(ret, root, best, e);
}

static int unpack_package(const char *package, const struct tool_work *w, struct tool_kernel *ret,
			  struct ward_err *e)
{
	auto_free char *tree = path_join(w->path, "tree"), *deb = strdup(package);
	char program[] = "dpkg-deb", extract[] = "-x";
	char *argv[] = { program, extract, deb, tree, NULL };
	int r;

	if (!tree || !deb)
		return ward_fail(e, ENOMEM, "out of memory");
	r = tool_run(argv, NULL, e);
	return r < 0 ? r : find_in(tree, ret, e);
}

/* The newest package of small kernels, which are made for virtual machines. */
static int newest_package(char **ret, struct ward_err *e)
{
	char program[] = "apt-cache", verb[] = "pkgnames", prefix[] = "linux-image-";
	char *argv[] = { program, verb, prefix, NULL };
	auto_buf names = { 0 };
	regex_t shape;
	int r = tool_run_read(argv, NULL, 1 << 20, &names, e);

	if (r < 0)
		return r;
	if (regcomp(&shape, "^linux-image-[0-9]+\\.[0-9]+\\.[0-9]+[+0-9a-z.~-]*-cloud-amd64$",
		    REG_EXTENDED | REG_NOSUB) != 0)
		return ward_fail(e, ENOMEM, "out of memory");
	*ret = NULL;
	for (char *save = NULL, *name = names.len ? strtok_r(names.data, "\n", &save) : NULL; name;
	     name = strtok_r(NULL, "\n", &save))
		if (regexec(&shape, name, 0, NULL, 0) == 0 &&
		    (!*ret || compare_versions(*ret, name) < 0)) {
			free(*ret);
			*ret = strdup(name);
		}
	regfree(&shape);
	if (*ret)
		return 0;
	ward_fail(e, ENOENT, "apt knows no package linux-image-*-cloud-amd64");
	return ward_remedy(e, "apt-get update as root; or ward vm setup --from PACKAGE.deb");
}

static int fetch(const struct tool_options *o, const struct tool_work *w, struct tool_kernel *ret,
		 struct ward_err *e)
{
	char program[] = "apt-get", quiet[] = "-qq",
	     unsandboxed[] = "-oAPT::Sandbox::User=", verb[] = "download";
	auto_free char *name = NULL, *package = NULL;
	auto_dir d = NULL;
	int r = newest_package(&name, e);

	if (r < 0)
		return r;
	tool_tell(o, "fetching %s", name);
	r = tool_run((char *[]){ program, quiet, unsandboxed, verb, name, NULL }, w->path, e);
	if (r < 0)
		return ward_wrap(e, "fetching %s", name);
	d = opendir(w->path);
	for (struct dirent *entry = d ? readdir(d) : NULL; entry && !package; entry = readdir(d))
		if (strlen(entry->d_name) > 4 &&
		    strcmp(entry->d_name + strlen(entry->d_name) - 4, ".deb") == 0)
			package = path_join(w->path, entry->d_name);
	if (!package)
		return ward_fail(e, ENOENT, "apt-get download left no package");
	r = unpack_package(package, w, ret, e);
	unlink(package);
	return r;
}

static int from_file(const char *from, const struct tool_work *w, struct tool_kernel *ret,
		     struct ward_err *e)
{
	const char *base = strrchr(from, '/');
	size_t n = strlen(from);

	base = base ? base + 1 : from;
	if (access(from, R_OK) < 0) {
		ward_fail_errno(e, "--from %.200s cannot be read", from);
		return ward_remedy(e, "give a Debian package (linux-image-*.deb) or a file "
				      "vmlinuz-RELEASE; without --from one is found or fetched");
	}
	if (n > 4 && strcmp(from + n - 4, ".deb") == 0)
		return unpack_package(from, w, ret, e);
	if (strncmp(base, "vmlinuz-", 8) != 0) {
		ward_fail(e, EINVAL,
			  "--from %.200s is neither a Debian package nor a file vmlinuz-RELEASE",
			  from);
		return ward_remedy(e, "the modules are looked for in /lib/modules/RELEASE");
	}
	if (set_kernel(ret, "", base + 8, e) == 0 || ret->modules) {
		free(ret->image);
		ret->image = strdup(from);
	}
	return ret->image && ret->modules && access(ret->image, R_OK) == 0 &&
			       access(ret->modules, R_OK) == 0
		       ? 0
		       : ward_fail(e, ENOENT,
				   "%.200s or its modules in /lib/modules cannot be read", from);
}

int tool_kernel_find(const struct tool_options *o, const struct tool_work *w,
		     struct tool_kernel *ret, struct ward_err *e)
{
	struct ward_err unused = { 0 };

	*ret = (struct tool_kernel){ 0 };
	if (o->from)
		return from_file(o->from, w, ret, e);
	if (find_in("", ret, &unused) == 0)
		return 0;
	tool_kernel_clear(ret);
	return fetch(o, w, ret, e);
}

/* Where the packed kernel lies in a bzImage: Documentation/arch/x86/boot.rst. */
static bool find_payload(const unsigned char *b, size_t n, size_t *ret_at, size_t *ret_len)
{
	uint32_t offset, length;
	size_t setup;

	if (n < 0x260 || memcmp(b + 0x202, "HdrS", 4) != 0)
		return false;
	setup = ((b[0x1f1] ? b[0x1f1] : 4u) + 1u) * 512u;
	memcpy(&offset, b + 0x248, 4);
	memcpy(&length, b + 0x24c, 4);
	if (setup > n || offset > n - setup || length > n - setup - offset || length < 16)
		return false;
	*ret_at = setup + offset;
	*ret_len = length;
	return true;
}

int tool_kernel_extract(const char *image, const char *out, struct ward_err *e)
{
	auto_buf packed = { 0 }, kernel = { 0 };
	auto_fd fd = -1;
	size_t at = 0, n = 0;
	int r = io_read_file(AT_FDCWD, image, KERNEL_BYTES_MAX, &packed);

	if (r < 0)
		return ward_fail(e, -r, "cannot read %s: %s", image, strerror(-r));
	if (!find_payload((const unsigned char *)packed.data, packed.len, &at, &n))
		return ward_fail(e, EINVAL, "%s is no kernel for this machine", image);
	if (memcmp(packed.data + at, "\x1f\x8b", 2) != 0)
		n -= 4; /* the size of what comes out stands behind it */
	r = tool_unpack(packed.data + at, n, KERNEL_BYTES_MAX, &kernel, e);
	if (r < 0)
		return ward_wrap(e, "unpacking %s", image);
	if (kernel.len < 4 || memcmp(kernel.data, "\177ELF", 4) != 0)
		return ward_fail(e, EINVAL, "%s holds no ELF kernel", image);
	fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	r = fd < 0 ? -errno : io_write_all(fd, kernel.data, kernel.len);
	return r < 0 ? ward_fail(e, -r, "cannot write %s: %s", out, strerror(-r)) : 0;
}
