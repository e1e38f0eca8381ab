/*
 * Whether a workspace can be reviewed. In: the plan so far, the caller's mount table. Out: a
 * refusal that says why not. Runs in the supervisor with the user's rights; changes nothing.
 *
 * An overlay does not look through the mounts that lie in its lower directory: what they hold would
 * be missing, and what they cover would show. The kernel refuses that for users; ward does for
 * everybody.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/path.h"

#define MOUNTS_MAX (16u << 20)

/* Undoes the octal escapes of the kernel's table, in place. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

char *plan_mount_beneath(const char *table, size_t n, const char *dir)
{
	for (size_t at = 0; at < n;) {
		const char *end = memchr(table + at, '\n', n - at), *field = table + at;
		size_t len = end ? (size_t)(end - field) : n - at;
		const char *stop = field + len;

		at += len + 1;
		/* id, parent, device, root; then where it is mounted */
		for (int i = 0; i < 4 && field; i++) {
			field = memchr(field, ' ', (size_t)(stop - field));
			field = field ? field + 1 : NULL;
		}
		if (!field)
			continue;
		end = memchr(field, ' ', (size_t)(stop - field));
		auto_free char *path = strndup(field, (size_t)((end ? end : stop) - field));

		if (!path)
			return NULL;
		unescape(path);
		if (path[0] == '/' && path_is_beneath(path, dir) && strcmp(path, dir) != 0)
			return take_ptr(path);
	}
	return NULL;
}

int plan_check_review(const struct plan *p, struct ward_err *e)
{
	auto_free char *inner = NULL;
	auto_buf table = { 0 };
	int r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &table);

	if (r < 0)
		return ward_fail(e, -r, "cannot read the table of mounts: %s", strerror(-r));
	inner = plan_mount_beneath(buf_text(&table), table.len, p->workspace);
	if (!inner)
		return 0;
	ward_fail(e, EXDEV,
		  "a file system is mounted at %s, in the workspace: an overlay does not include "
		  "mounts",
		  inner);
	ward_wrap(e, "review");
	return ward_remedy(e, "unmount it, use a workspace beneath or next to it, or mount the "
			      "workspace directly (filesystem.mode: read_only or read_write)");
}
