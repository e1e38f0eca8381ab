/*
 * ward vm ls: the kernel, the roots and the templates that are kept. In: the state directory. Out:
 * a list.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/units.h"
#include "vmtool/tool.h"

/* One line for each entry: what takes its room is the file FILE in it, or itself. */
static int list_dir(const char *part, const char *file, struct json *j, struct buf *out,
		    struct ward_err *e)
{
	auto_free char *dir = NULL;
	auto_strv names = { 0 };
	auto_dir d = NULL;
	int r = vm_path(part, &dir, e);

	if (r < 0)
		return r;
	d = opendir(dir);
	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d))
		if (entry->d_name[0] != '.')
			strv_add(&names, entry->d_name);
	strv_sort(&names);
	for (size_t i = 0; i < names.len; i++) {
		auto_free char *path = path_join(dir, names.items[i]),
			       *big = path && file ? path_join(path, file) : NULL,
			       *info = path && file ? path_join(path, "info") : NULL;
		auto_buf about = { 0 };
		struct stat st = { 0 };
		char size[32];

		if (!path || stat(big ? big : path, &st) < 0)
			continue;
		if (info && io_read_file(AT_FDCWD, info, 1024, &about) < 0)
			continue;
		if (about.len)
			about.data[strcspn(about.data, "\n")] = '\0';
		units_format_size((uint64_t)st.st_blocks * 512, size, sizeof(size));
		if (j) {
			json_begin_object(j, NULL);
			json_string(j, "name", names.items[i]);
			json_uint(j, "bytes", (uint64_t)st.st_blocks * 512);
			json_string(j, "about", about.len ? about.data : NULL);
			json_end_object(j);
		} else {
			buf_printf(out, "%-9s %.12s %10s  ", file ? "template" : "root",
				   names.items[i], size);
			text_escape(out, buf_text(&about));
			buf_puts(out, "\n");
		}
	}
	return names.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int tool_list(const struct tool_options *o)
{
	struct ward_err e = { 0 }, none = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out }, *to = o->json ? &j : NULL;
	struct vm_boot boot = { 0 };
	bool found = !o->count && vm_boot_find(&boot, &none) == 0;
	int r;

	if (o->count) {
		ward_fail(&e, EINVAL, "ls takes no name: %.100s", o->words[0]);
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "kernel", found ? boot.release : NULL);
		json_string(&j, "boot", found ? boot.id : NULL);
		json_begin_array(&j, "roots");
	} else {
		buf_printf(&out,
			   found ? "kernel    %.12s %10s  %s\n"
				 : "there is no kernel; ward vm setup gets one\n",
			   boot.id, "", boot.release);
	}
	vm_boot_clear(&boot);
	r = list_dir(VM_ROOTS, NULL, to, &out, &e);
	if (o->json) {
		json_end_array(&j);
		json_begin_array(&j, "templates");
	}
	if (r == 0)
		r = list_dir(VM_TEMPLATES, "ram", to, &out, &e);
	if (o->json) {
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(&out, "\n");
	}
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}
