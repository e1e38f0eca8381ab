/*
 * Paths of a policy. In: a policy as a document or the command line wrote it. Out: the same with
 * absolute paths: relative ones are below the directory of the document, or where the caller stands
 * for options, and "~/" is the home directory. Lexical only: nothing is opened. Runs in `ward` with
 * the user's rights.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "plan/spec.h"
#include "plan/spec_source.h"
#include "state/images.h"

char *spec_absolute(const char *base, const char *path)
{
	const char *home = getenv("HOME");

	if (strncmp(path, "~/", 2) == 0 && home && *home == '/')
		return path_join(home, path + 2);
	return path_join(base, path);
}

/* "path:~/x" too; a pattern with * in front fits anywhere. */
static int resolve_never(struct strv *never, const char *base, struct ward_err *e)
{
	static const char kind[] = "path:";

	for (size_t i = 0; i < never->len; i++) {
		const char *text = never->items[i] + strlen(kind);
		auto_free char *path = NULL;
		auto_buf entry = { 0 };

		if (strncmp(never->items[i], kind, strlen(kind)) != 0 || *text != '~')
			continue;
		path = spec_absolute(base, text);
		buf_printf(&entry, "%s%s", kind, path ? path : "");
		if (!path || entry.failed)
			return ward_fail(e, ENOMEM, "out of memory");
		free(never->items[i]);
		never->items[i] = buf_take(&entry);
	}
	return 0;
}

int spec_resolve_mounts(struct policy *p, const char *base, struct ward_err *e)
{
	for (size_t i = 0; i < p->fs_host_mounts.len; i++) {
		struct policy_mount *m = &p->fs_host_mounts.items[i];
		char *path;

		if (*m->path == '/')
			continue;
		path = spec_absolute(base, m->path);
		if (!path)
			return ward_fail(e, ENOMEM, "out of memory");
		free(m->path);
		m->path = path;
	}
	for (size_t i = 0; i < p->fs_ask.len; i++) {
		char *path = spec_absolute(base, p->fs_ask.items[i]);

		if (!path)
			return ward_fail(e, ENOMEM, "out of memory");
		free(p->fs_ask.items[i]);
		p->fs_ask.items[i] = path;
	}
	return resolve_never(&p->appr_never, base, e);
}

char *spec_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int resolve_one(char **path, const char *base, struct ward_err *e)
{
	char *full;

	if (!*path || **path == '/')
		return 0;
	full = spec_absolute(base, *path);
	if (!full)
		return ward_fail(e, ENOMEM, "out of memory");
	free(*path);
	*path = full;
	return 0;
}

int spec_resolve_single(struct policy *p, enum policy_source source, const char *base,
			struct ward_err *e)
{
	int r = 0;

	if (p->origin[POLICY_F_image].source == source && image_is_path(p->image))
		r = resolve_one(&p->image, base, e);
	if (r == 0 && p->origin[POLICY_F_net_record].source == source)
		r = resolve_one(&p->net_record, base, e);
	if (r == 0 && p->origin[POLICY_F_net_replay].source == source)
		r = resolve_one(&p->net_replay, base, e);
	return r;
}

int spec_resolve_paths(struct policy *p, enum policy_source source, const char *dir,
		       struct ward_err *e)
{
	auto_free char *workspace = NULL;

	if (p->origin[POLICY_F_fs_workspace].source == source) {
		workspace = spec_absolute(dir, p->fs_workspace);
		if (!workspace)
			return ward_fail(e, ENOMEM, "out of memory");
		free(p->fs_workspace);
		p->fs_workspace = take_ptr(workspace);
	}
	if (spec_resolve_single(p, source, dir, e) < 0)
		return -e->code;
	return spec_resolve_mounts(p, dir, e);
}
