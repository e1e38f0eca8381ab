/*
 * ward vm setup: what every virtual machine starts from. In: a kernel (kernel.c) and the guest's
 * init, which lies beside ward. Out: STATE/vm/boot-HEX with the uncompressed kernel and the first
 * archive, and the file STATE/vm/boot that names it, last of all. The digest is that of both files;
 * a kernel that is no longer named is removed together with the templates that were made with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/remove.h"
#include "vmtool/tool.h"

static int add_file(struct sha256 *s, const char *path, struct ward_err *e)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	if (fd < 0)
		return ward_fail_errno(e, "cannot open %s", path);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		sha256_add(s, bytes, (size_t)n);
	return n < 0 ? ward_fail_errno(e, "cannot read %s", path) : 0;
}

static int write_text(const char *path, const char *text, struct ward_err *e)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : io_write_all(fd, text, strlen(text));

	return r < 0 ? ward_fail(e, -r, "cannot write %s: %s", path, strerror(-r)) : 0;
}

/* Fills DIR and names what it has become. */
static int make_boot(const struct tool_options *o, const struct tool_work *w, const char *dir,
		     char ret_id[SHA256_HEX], struct tool_kernel *k, struct ward_err *e)
{
	auto_free char *init = NULL, *stamp = NULL, *kernel = path_join(dir, "vmlinux"),
		       *initrd = path_join(dir, "initrd"), *info = path_join(dir, "info"),
		       *text = NULL;
	struct tool_modules modules = { 0 };
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;
	int r = program_path("ward-vm-init", &init, e);

	if (r == 0)
		r = vm_init_stamp(init, &stamp, e);
	if (r == 0)
		r = tool_kernel_find(o, w, k, e);
	if (r == 0 && (!kernel || !initrd || !info ||
		       asprintf(&text, "release %s\n%s\n", k->release, stamp) < 0))
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		tool_tell(o, "unpacking the kernel %s", k->release);
	if (r == 0)
		r = tool_kernel_extract(k->image, kernel, e);
	if (r == 0)
		r = tool_modules_find(k->modules, &modules, e);
	if (r == 0)
		r = tool_initrd_write(initrd, init, &modules, e);
	tool_modules_clear(&modules);
	if (r == 0)
		r = write_text(info, text, e);
	sha256_begin(&s);
	if (r == 0)
		r = add_file(&s, kernel, e);
	if (r == 0)
		r = add_file(&s, initrd, e);
	if (r == 0)
		r = add_file(&s, info, e);
	sha256_end(&s, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret_id + 2 * i, 3, "%02x", digest[i]);
	return r;
}

/* Everything of kernels that are not named any more. What runs keeps what it has open. */
static void drop_others(const char *vm_dir, const char *id)
{
	auto_free char *templates = path_join(vm_dir, VM_TEMPLATES);
	auto_dir d = opendir(vm_dir);

	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
		auto_free char *path =
			strncmp(entry->d_name, VM_BOOT_PREFIX, strlen(VM_BOOT_PREFIX)) == 0 &&
					strcmp(entry->d_name + strlen(VM_BOOT_PREFIX), id) != 0
				? path_join(vm_dir, entry->d_name)
				: NULL;

		if (!path)
			continue;
		if (remove_tree(path) < 0 || !templates || remove_tree(templates) < 0)
			continue; /* it takes room, no more */
		mkdir(templates, 0700);
	}
}

static int commit(const struct tool_work *w, const char *dir, const char *id, struct ward_err *e)
{
	auto_free char *place = NULL, *name = NULL, *part = path_join(w->path, "name"),
		       *vm_dir = NULL, *line = NULL;
	char rest[SHA256_HEX + 16];
	int r;

	snprintf(rest, sizeof(rest), VM_BOOT_PREFIX "%s", id);
	r = vm_path(rest, &place, e);
	if (r == 0)
		r = vm_path(VM_BOOT, &name, e);
	if (r == 0)
		r = vm_path("", &vm_dir, e);
	if (r == 0 && (!part || asprintf(&line, "%s\n", id) < 0))
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r != 0)
		return r;
	if (rename(dir, place) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		return ward_fail_errno(e, "cannot make %s", place);
	r = write_text(part, line, e);
	if (r == 0 && rename(part, name) < 0)
		r = ward_fail_errno(e, "cannot make %s", name);
	if (r == 0)
		drop_others(vm_dir, id);
	return r;
}

static int say_done(const struct tool_options *o, const char *id, const char *release)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "kernel", release);
		json_string(&j, "boot", id);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (!o->quiet) {
		buf_printf(&out,
			   "guests boot the kernel %s; ward vm template build makes their start "
			   "fast\n",
			   release);
	}
	return say_out(&out, EXIT_FINE);
}

int tool_setup(const struct tool_options *o)
{
	struct tool_kernel k = { 0 };
	struct tool_work w = { .lock_fd = -1 };
	struct ward_err e = { 0 };
	auto_free char *dir = NULL, *qemu = NULL;
	char id[SHA256_HEX] = "";
	int r, code = EXIT_REFUSED;

	if (o->count) {
		ward_fail(&e, EINVAL, "setup takes no name");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	r = vm_find_qemu(&qemu, &e);
	if (r == 0)
		r = tool_work_begin(&w, &e);
	dir = r == 0 ? path_join(w.path, "boot") : NULL;
	if (r == 0 && (!dir || mkdir(dir, 0755) < 0))
		r = ward_fail_errno(&e, "cannot make a directory");
	if (r == 0)
		r = make_boot(o, &w, dir, id, &k, &e);
	if (r == 0)
		r = commit(&w, dir, id, &e);
	code = r == 0 ? say_done(o, id, k.release) : say_error(&e, o->json, EXIT_REFUSED);
	tool_kernel_clear(&k);
	tool_work_end(&w);
	return code;
}
