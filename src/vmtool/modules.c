/*
 * The modules that a guest needs. In: lib/modules/RELEASE of a kernel package, which has no index
 * yet. Out: the modules, unpacked, each behind those that it depends on by its own word ("depends="
 * among its information). What the kernel has built in is passed over.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/path.h"
#include "base/walk.h"
#include "vmtool/tool.h"

#define MODULE_BYTES_MAX (64u * 1024 * 1024)
#define NAME_MAX_BYTES 60

static const struct {
	const char *name;
	bool needed; /* without it there is no guest */
} wanted[] = {
	{ "virtio_pci", true },      { "virtio_console", true }, { "virtio_blk", true },
	{ "crc32c_generic", false }, { "erofs", true },          { "overlay", true },
	{ "virtio_net", true },
};

struct search {
	const char *dir;
	struct strv names, paths; /* of all modules, side by side */
	struct buf builtin;       /* modules.builtin: a path in each line */
	struct tool_modules *out;
};

/* kernel/drivers/net/virtio-net.ko.xz -> virtio_net; false: it is none. */
static bool module_name(const char *path, char out[NAME_MAX_BYTES + 1])
{
	const char *base = strrchr(path, '/'), *dot;
	size_t n;

	base = base ? base + 1 : path;
	dot = strstr(base, ".ko");
	n = dot ? (size_t)(dot - base) : 0;
	if (!n || n > NAME_MAX_BYTES || (dot[3] && dot[3] != '.'))
		return false;
	for (size_t i = 0; i < n; i++)
		out[i] = base[i] == '-' ? '_' : base[i];
	out[n] = '\0';
	return true;
}

static int see(void *ctx, unused_arg struct walk_dir *d, const struct walk_entry *entry)
{
	struct search *s = ctx;
	char name[NAME_MAX_BYTES + 1];

	if (entry->type == DT_REG && module_name(entry->path, name)) {
		strv_add(&s->names, name);
		strv_add(&s->paths, entry->path);
	}
	return entry->type == DT_DIR;
}

const char *tool_module_depends(const char *bytes, size_t n)
{
	static const char key[] = "depends=";
	const char *at = bytes, *end = bytes + n;

	while ((at = memmem(at, (size_t)(end - at), key, strlen(key)))) {
		const char *text = at + strlen(key);

		/* a text of its own, ended by NUL: not a part of another one */
		if ((at == bytes || at[-1] == '\0') && memchr(text, '\0', (size_t)(end - text)))
			return text;
		at = text;
	}
	return NULL;
}

static bool is_builtin(const struct search *s, const char *name)
{
	const char *at = buf_text(&s->builtin);

	while (*at) {
		size_t n = strcspn(at, "\n");
		auto_free char *line = strndup(at, n);
		char found[NAME_MAX_BYTES + 1];

		if (line && module_name(line, found) && strcmp(found, name) == 0)
			return true;
		at += n + (at[n] == '\n');
	}
	return false;
}

static bool is_there(const struct search *s, const char *name)
{
	for (size_t i = 0; i < s->out->len; i++)
		if (strcmp(s->out->items[i].name, name) == 0)
			return true;
	return false;
}

static int load(struct search *s, const char *rest, struct buf *out, struct ward_err *e)
{
	auto_free char *path = path_join(s->dir, rest);
	auto_buf packed = { 0 };
	int r = path ? io_read_file(AT_FDCWD, path, MODULE_BYTES_MAX, &packed) : -ENOMEM;

	if (r < 0)
		return ward_fail(e, -r, "cannot read the module %s: %s", rest, strerror(-r));
	if (packed.len > 4 && memcmp(packed.data, "\177ELF", 4) == 0) {
		*out = packed;
		packed = (struct buf){ 0 };
		return 0;
	}
	r = tool_unpack(packed.data, packed.len, MODULE_BYTES_MAX, out, e);
	return r < 0 ? ward_wrap(e, "unpacking the module %s", rest) : 0;
}

static int add(struct search *s, const char *name, bool needed, unsigned deep, struct ward_err *e);

static int add_depends(struct search *s, const char *text, unsigned deep, struct ward_err *e)
{
	auto_free char *list = strdup(text ? text : "");
	int r = list ? 0 : ward_fail(e, ENOMEM, "out of memory");

	for (char *save = NULL, *name = r == 0 ? strtok_r(list, ",", &save) : NULL; name && r == 0;
	     name = strtok_r(NULL, ",", &save)) {
		for (char *c = name; *c; c++)
			*c = *c == '-' ? '_' : *c;
		r = add(s, name, true, deep + 1, e);
	}
	return r;
}

static int add(struct search *s, const char *name, bool needed, unsigned deep, struct ward_err *e)
{
	for (size_t i = 0; i < s->names.len && deep < 16; i++) {
		struct buf bytes = { 0 };
		int r;

		if (strcmp(s->names.items[i], name) != 0)
			continue;
		if (is_there(s, name))
			return 0;
		r = load(s, s->paths.items[i], &bytes, e);
		if (r == 0)
			r = add_depends(s, tool_module_depends(bytes.data, bytes.len), deep, e);
		if (r == 0 && s->out->len == ARRAY_LEN(s->out->items))
			r = ward_fail(e, E2BIG, "the guest would need too many modules");
		if (r < 0) {
			buf_free(&bytes);
			return r;
		}
		s->out->items[s->out->len++] = (struct tool_module){ strdup(name), bytes };
		return 0;
	}
	if (!needed || is_builtin(s, name))
		return 0;
	ward_fail(e, ENOENT, "the kernel has no %s, neither built in nor as a module", name);
	return ward_remedy(
		e,
		"use another kernel with --from; Debian's linux-image-cloud-amd64 has everything");
}

int tool_modules_find(const char *dir, struct tool_modules *ret, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = see };
	struct search s = { .dir = dir, .out = ret };
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *builtin = path_join(dir, "modules.builtin");
	int r = fd < 0 ? ward_fail_errno(e, "cannot open %s", dir) : 0;

	*ret = (struct tool_modules){ 0 };
	if (r == 0 && builtin && io_read_file(AT_FDCWD, builtin, MODULE_BYTES_MAX, &s.builtin) < 0)
		r = ward_fail(e, ENOENT, "%s is missing: not a modules directory", builtin);
	if (r == 0)
		r = walk_tree(fd, &ops, &s, 0, e);
	if (r == 0 && (s.names.failed || s.paths.failed))
		r = ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < ARRAY_LEN(wanted) && r == 0; i++)
		r = add(&s, wanted[i].name, wanted[i].needed, 0, e);
	strv_free(&s.names);
	strv_free(&s.paths);
	buf_free(&s.builtin);
	if (r < 0)
		tool_modules_clear(ret);
	return r;
}

void tool_modules_clear(struct tool_modules *m)
{
	for (size_t i = 0; i < m->len; i++) {
		free(m->items[i].name);
		buf_free(&m->items[i].bytes);
	}
	m->len = 0;
}
