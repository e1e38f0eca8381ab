/*
 * The record and the base of a private git directory as bytes. In: text of ward's own state
 * directory. Out: structs. Pure functions; damaged text is refused as a whole.
 */
#include "gitview/git_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard_internal.h"

#define HEADER "ward-git-view 1"

static void put_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s ", key);
	guard_escape(out, value);
	buf_puts(out, "\n");
}

void git_view_record_write(const struct git_view_record *r, struct buf *out)
{
	buf_puts(out, HEADER "\n");
	put_text(out, "git-dir", r->git_dir);
	put_text(out, "root", r->root);
	put_text(out, "host-root", r->host_root);
	buf_printf(out, "device %" PRIu64 "\ninode %" PRIu64 "\nuid %u\ngid %u\nmade %" PRIu64 "\n",
		   r->device, r->inode, r->uid, r->gid, r->made_ns);
	if (r->free_config)
		buf_puts(out, "free config\n");
	if (r->free_hooks)
		buf_puts(out, "free hooks\n");
	for (size_t i = 0; i < r->lent.len; i++)
		put_text(out, "lent", r->lent.items[i]);
	for (size_t i = 0; i < r->rules.len; i++)
		put_text(out, "protect", r->rules.items[i]);
	buf_puts(out, "complete\n");
}

static int take_text(char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

static int read_line(struct git_view_record *r, const char *key, char *value)
{
	guard_unescape(value);
	if (strcmp(key, "git-dir") == 0)
		return take_text(&r->git_dir, value);
	if (strcmp(key, "root") == 0)
		return take_text(&r->root, value);
	if (strcmp(key, "host-root") == 0)
		return take_text(&r->host_root, value);
	if (strcmp(key, "device") == 0)
		r->device = strtoull(value, NULL, 10);
	else if (strcmp(key, "inode") == 0)
		r->inode = strtoull(value, NULL, 10);
	else if (strcmp(key, "uid") == 0)
		r->uid = (uid_t)strtoul(value, NULL, 10);
	else if (strcmp(key, "gid") == 0)
		r->gid = (gid_t)strtoul(value, NULL, 10);
	else if (strcmp(key, "made") == 0)
		r->made_ns = strtoull(value, NULL, 10);
	else if (strcmp(key, "free") == 0 && strcmp(value, "config") == 0)
		r->free_config = true;
	else if (strcmp(key, "free") == 0 && strcmp(value, "hooks") == 0)
		r->free_hooks = true;
	else if (strcmp(key, "lent") == 0)
		strv_add(&r->lent, value);
	else if (strcmp(key, "protect") == 0)
		strv_add(&r->rules, value);
	else
		return -EINVAL;
	return r->lent.failed || r->rules.failed ? -ENOMEM : 0;
}

int git_view_record_read(const char *text, size_t n, struct git_view_record *ret_record)
{
	struct git_view_record r = { 0 };
	char *copy = memchr(text, '\0', n) ? NULL : strndup(text, n), *rest = copy, *line;
	bool complete = false;
	int status = copy ? 0 : -EINVAL;

	line = copy ? strsep(&rest, "\n") : NULL;
	if (line && strcmp(line, HEADER) != 0)
		status = -EINVAL;
	while (status == 0 && !complete && (line = strsep(&rest, "\n"))) {
		char *key = strsep(&line, " ");

		complete = !line && strcmp(key, "complete") == 0;
		if (!complete)
			status = line ? read_line(&r, key, line) : -EINVAL;
	}
	free(copy);
	if (status == 0 && (!complete || !r.git_dir || !r.root || !r.host_root))
		status = -EINVAL;
	if (status < 0)
		git_view_record_clear(&r);
	else
		*ret_record = r;
	return status;
}

void git_view_record_clear(struct git_view_record *r)
{
	free(r->git_dir);
	free(r->root);
	free(r->host_root);
	strv_free(&r->lent);
	strv_free(&r->rules);
	*r = (struct git_view_record){ 0 };
}

void git_view_base_head(struct buf *out, const char *path, size_t n)
{
	buf_add(out, path, strlen(path) + 1);
	buf_printf(out, "%zu", n);
	buf_add(out, "", 1);
}

void git_view_base_add(struct buf *out, const char *path, const char *bytes, size_t n)
{
	git_view_base_head(out, path, n);
	buf_add(out, bytes, n);
}

int git_view_base_read(const char *text, size_t n, git_view_file file, void *ctx)
{
	size_t at = 0;
	int status = 0;

	while (at < n && status >= 0) {
		const char *path = text + at, *end = memchr(path, '\0', n - at), *number, *bytes;
		unsigned long length;
		char *stop;

		number = end ? end + 1 : NULL;
		end = number ? memchr(number, '\0', n - (size_t)(number - text)) : NULL;
		if (!end || end == number || !*path)
			return -EINVAL;
		length = strtoul(number, &stop, 10);
		bytes = end + 1;
		if (stop != end || length > n - (size_t)(bytes - text))
			return -EINVAL;
		status = file(ctx, path, bytes, length);
		at = (size_t)(bytes - text) + length;
	}
	return status < 0 ? status : 0;
}
