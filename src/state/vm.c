/*
 * Where the vm engine keeps things, and what names them. In: the state directory. Out: paths and
 * keys. Runs in the supervisor and in ward-vm-tool with the user's rights; reads a few small files,
 * changes nothing. A key is the digest of everything that the thing named depends on: what does not
 * fit is simply not found.
 */
#include "state/vm.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "base/path.h"
#include "host/program.h"
#include "state/store.h"

#define HEX "0123456789abcdef"

int vm_path(const char *rest, char **ret_path, struct ward_err *e)
{
	auto_free char *state = NULL;
	int r = state_dir_path(&state, e);

	if (r < 0)
		return r;
	if (asprintf(ret_path, "%s/" VM_DIR "/%s", state, rest) < 0) {
		*ret_path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	return 0;
}

void vm_boot_clear(struct vm_boot *b)
{
	free(b->kernel);
	free(b->initrd);
	*b = (struct vm_boot){ 0 };
}

static int no_kernel(struct ward_err *e, const char *why)
{
	ward_fail(e, ENOENT, "vm: %s", why);
	return ward_remedy(e, "ward vm setup gets a kernel and builds the guest's initial files; "
			      "it needs no root");
}

int vm_init_stamp(const char *init_path, char **ret_text, struct ward_err *e)
{
	struct stat st;

	if (stat(init_path, &st) < 0)
		return ward_fail_errno(e, "cannot look at %s", init_path);
	if (asprintf(ret_text, "init %lld %lld", (long long)st.st_size,
		     (long long)st.st_mtim.tv_sec) < 0) {
		*ret_text = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	return 0;
}

/* "release R" and "init SIZE TIME", each a line. */
static bool info_fits(const char *info, const char *stamp, char release[64])
{
	const char *at = strncmp(info, "release ", 8) == 0 ? info + 8 : NULL;
	size_t n = at ? strcspn(at, "\n") : 0;

	if (!at || n >= 64 || !at[n])
		return false;
	memcpy(release, at, n);
	release[n] = '\0';
	at += n + 1;
	n = strlen(stamp);
	return strncmp(at, stamp, n) == 0 && at[n] == '\n';
}

int vm_boot_find(struct vm_boot *ret, struct ward_err *e)
{
	auto_free char *name = NULL, *dir = NULL, *info_path = NULL, *init = NULL, *stamp = NULL;
	auto_buf id = { 0 }, info = { 0 };
	char rest[SHA256_HEX + 16];
	int r = vm_path(VM_BOOT, &name, e);

	*ret = (struct vm_boot){ 0 };
	if (r < 0)
		return r;
	if (io_read_file(AT_FDCWD, name, 256, &id) < 0 || id.len < SHA256_HEX - 1 ||
	    strspn(id.data, HEX) != SHA256_HEX - 1)
		return no_kernel(e, "there is no kernel for guests yet");
	memcpy(ret->id, id.data, SHA256_HEX - 1);
	snprintf(rest, sizeof(rest), VM_BOOT_PREFIX "%s", ret->id);
	r = vm_path(rest, &dir, e);
	if (r == 0)
		r = program_path("ward-vm-init", &init, e);
	if (r == 0)
		r = vm_init_stamp(init, &stamp, e);
	if (r != 0)
		return r;
	info_path = path_join(dir, "info");
	ret->kernel = path_join(dir, "vmlinux");
	ret->initrd = path_join(dir, "initrd");
	if (!info_path || !ret->kernel || !ret->initrd)
		r = ward_fail(e, ENOMEM, "out of memory");
	else if (io_read_file(AT_FDCWD, info_path, 4096, &info) < 0 ||
		 access(ret->kernel, R_OK) < 0 || access(ret->initrd, R_OK) < 0)
		r = no_kernel(e, "the files of the guest's kernel are missing");
	else if (!info_fits(buf_text(&info), stamp, ret->release))
		r = no_kernel(e, "the guest's initial files come from another version of ward");
	if (r < 0)
		vm_boot_clear(ret);
	return r;
}

/* What the host's own directories are at this moment: any package that comes or goes changes it. */
static int describe_host(struct buf *out)
{
	static const char *const stamps[] = {
		"/var/lib/dpkg/status", "/var/lib/rpm", "/usr", "/usr/bin", "/usr/lib",
		"/etc/ld.so.cache"
	};

	buf_puts(out, "host");
	for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
		struct stat st;

		if (stat(stamps[i], &st) == 0)
			buf_printf(out, " %s %lld.%09ld", stamps[i], (long long)st.st_mtim.tv_sec,
				   st.st_mtim.tv_nsec);
	}
	return out->failed ? -ENOMEM : 0;
}

int vm_root_key(const struct image *image, char ret_hex[SHA256_HEX], struct ward_err *e)
{
	auto_buf text = { 0 };

	if (image && !image->digest[0]) {
		ward_fail(e, EINVAL,
			  "image: a mutable directory cannot be a virtual machine's root");
		return ward_remedy(e, "ward image import DIRECTORY --name NAME, then --image NAME");
	}
	if (image)
		buf_printf(&text, "image %s", image->digest);
	else if (describe_host(&text) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	sha256_hex(text.data, text.len, ret_hex);
	return 0;
}

int vm_root_path(const char *key, char **ret_path, struct ward_err *e)
{
	char rest[SHA256_HEX + 32];

	snprintf(rest, sizeof(rest), VM_ROOTS "/%s.erofs", key);
	return vm_path(rest, ret_path, e);
}

/* The processor, but for which of several it is, and the host's kernel, whose KVM shows it: with
 * KVM a template holds what its kernel found out about it. */
static void describe_processor(struct buf *out)
{
	static const unsigned leaves[] = { 0, 1, 7, 0x80000001, 0x80000008, 0x80000021 };
	struct utsname host = { 0 };
	unsigned a, b, c, d;

	for (size_t i = 0; i < ARRAY_LEN(leaves); i++)
		if (__get_cpuid_count(leaves[i], 0, &a, &b, &c, &d))
			buf_printf(out, " %x %x %x %x", a, leaves[i] == 1 ? b & 0x00ffffff : b, c,
				   d);
	if (uname(&host) == 0)
		buf_printf(out, " %s %s", host.release, host.version);
}

int vm_template_key(const struct vm_kind *k, char ret_hex[SHA256_HEX], struct ward_err *e)
{
	auto_buf text = { 0 };
	struct stat st;

	if (stat(k->program, &st) < 0)
		return ward_fail_errno(e, "cannot look at %s", k->program);
	buf_printf(&text, "%d %s %s %s %s %lld %lld.%09ld %llu %u %d", VM_DEVICES, k->boot_id,
		   k->root_key, k->accel, k->program, (long long)st.st_size,
		   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		   (unsigned long long)k->memory_bytes, k->cpus, k->network);
	if (strcmp(k->accel, "kvm") == 0)
		describe_processor(&text);
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	sha256_hex(text.data, text.len, ret_hex);
	return 0;
}

uint64_t vm_upper_bytes(uint64_t memory, unsigned cpus)
{
	return memory + VM_UPPER_OVERHEAD + (cpus - 1) * VM_STACK_BYTES;
}

int vm_find_qemu(char **ret_path, struct ward_err *e)
{
	static const char *const places[] = { "/usr/bin/qemu-system-x86_64",
					      "/usr/libexec/qemu-kvm",
					      "/usr/local/bin/qemu-system-x86_64" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0) {
			*ret_path = strdup(places[i]);
			return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
		}
	ward_fail(e, ENOENT, "vm: there is no QEMU below /usr");
	return ward_remedy(e, "install it: apt-get install qemu-system-x86");
}
