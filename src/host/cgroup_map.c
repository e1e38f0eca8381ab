/*
 * Where the caller's own cgroups are. In: the texts of /proc/self/mountinfo and
 * /proc/self/cgroup. Out: one absolute directory per hierarchy that ward uses. Runs in the
 * supervisor with the user's rights; changes nothing.
 *
 * A hierarchy may be mounted more than once (containers bind parts of it): the first mount
 * whose root the caller's cgroup lies beneath is taken. A cgroup outside of the mount ("/../x",
 * seen through a cgroup namespace) is not reachable, and the place stays empty. The kernel
 * escapes blanks in mount points as \040; they are unescaped here.
 */
#include "host/cgroup_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"

#define MAX_TEXT (4u << 20)

static const char *const place_names[CG_PLACES] = {
	[CG_MEMORY] = "memory",   [CG_PIDS] = "pids",       [CG_CPU] = "cpu",
	[CG_CPUACCT] = "cpuacct", [CG_FREEZER] = "freezer", [CG_UNIFIED] = "",
};

/* A piece of text that is not NUL-terminated. */
struct piece {
	const char *at;
	size_t len;
};

static bool piece_is(struct piece p, const char *s)
{
	return strlen(s) == p.len && memcmp(p.at, s, p.len) == 0;
}

/* Takes what stands before the next separator off *rest; false at the end. */
static bool next_piece(struct piece *rest, char separator, struct piece *ret)
{
	const char *end;

	if (!rest->at)
		return false;
	end = memchr(rest->at, separator, rest->len);
	ret->at = rest->at;
	if (!end) {
		ret->len = rest->len;
		rest->at = NULL;
		rest->len = 0;
		return true;
	}
	ret->len = (size_t)(end - rest->at);
	rest->len -= ret->len + 1;
	rest->at = end + 1;
	return true;
}

static bool list_has(struct piece list, const char *name)
{
	struct piece item;

	while (next_piece(&list, ',', &item))
		if (piece_is(item, name))
			return true;
	return false;
}

/* A copy with \ooo replaced; NULL when out of memory. */
static char *unescape(struct piece p)
{
	char *out = malloc(p.len + 1), *to = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < p.len; i++) {
		const char *c = p.at + i;

		if (*c == '\\' && p.len - i > 3 && c[1] >= '0' && c[1] <= '3' && c[2] >= '0' &&
		    c[2] <= '7' && c[3] >= '0' && c[3] <= '7') {
			*to++ = (char)((c[1] - '0') << 6 | (c[2] - '0') << 3 | (c[3] - '0'));
			i += 3;
		} else {
			*to++ = *c;
		}
	}
	*to = '\0';
	return out;
}

/* The caller's path in the hierarchy of a place: "12:cpu,cpuacct:/a/b" or "0::/a/b". */
static bool own_path(const char *self_cgroup, enum cgroup_place place, struct piece *ret)
{
	struct piece rest = { self_cgroup, strlen(self_cgroup) }, line;

	while (next_piece(&rest, '\n', &line)) {
		struct piece id, controllers;

		if (!next_piece(&line, ':', &id) || !next_piece(&line, ':', &controllers) ||
		    !line.at)
			continue;
		if (place == CG_UNIFIED ? piece_is(id, "0") && controllers.len == 0
					: list_has(controllers, place_names[place])) {
			*ret = line;
			return true;
		}
	}
	return false;
}

struct mount_line {
	struct piece root, point, type, options;
};

static bool parse_mount(struct piece line, struct mount_line *m)
{
	struct piece field;

	for (int i = 0; i < 3; i++)
		if (!next_piece(&line, ' ', &field))
			return false;
	if (!next_piece(&line, ' ', &m->root) || !next_piece(&line, ' ', &m->point))
		return false;
	do
		if (!next_piece(&line, ' ', &field))
			return false;
	while (!piece_is(field, "-"));
	return next_piece(&line, ' ', &m->type) && next_piece(&line, ' ', &field) &&
	       next_piece(&line, ' ', &m->options);
}

/* Joins mount point and the part of own below root into the place; leaves it empty when own
 * lies elsewhere. */
static int set_place(struct cgroup_map *map, enum cgroup_place place, const struct mount_line *m,
		     struct piece own)
{
	auto_free char *root = unescape(m->root);
	auto_free char *point = unescape(m->point);
	auto_free char *path = strndup(own.at, own.len);
	const char *below;
	size_t n;

	if (!root || !point || !path)
		return -ENOMEM;
	if (strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'))
		return 0;
	n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return 0;
	below = strcmp(path + n, "/") == 0 ? "" : path + n;
	if (asprintf(&map->dir[place], "%s%s", point, below) < 0) {
		map->dir[place] = NULL;
		return -ENOMEM;
	}
	map->mount[place] = take_ptr(point);
	return 0;
}

static int take_mount(struct cgroup_map *map, const struct mount_line *m, const char *self_cgroup)
{
	bool unified = piece_is(m->type, "cgroup2");

	if (!unified && !piece_is(m->type, "cgroup"))
		return 0;
	for (unsigned i = 0; i < CG_PLACES; i++) {
		enum cgroup_place place = (enum cgroup_place)i;
		struct piece own;
		int r;

		if (map->dir[i] || unified != (place == CG_UNIFIED))
			continue;
		if (!unified && !list_has(m->options, place_names[i]))
			continue;
		if (!own_path(self_cgroup, place, &own))
			continue;
		r = set_place(map, place, m, own);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_map_parse(struct cgroup_map *map, const char *mountinfo, const char *self_cgroup)
{
	struct piece rest = { mountinfo, strlen(mountinfo) }, line;

	memset(map, 0, sizeof(*map));
	while (next_piece(&rest, '\n', &line)) {
		struct mount_line m;
		int r;

		if (!parse_mount(line, &m))
			continue;
		r = take_mount(map, &m, self_cgroup);
		if (r < 0) {
			cgroup_map_clear(map);
			return r;
		}
	}
	return 0;
}

int cgroup_map_read(struct cgroup_map *map, struct ward_err *e)
{
	auto_buf mounts = { 0 };
	auto_buf own = { 0 };
	int r = io_read_file(AT_FDCWD, "/proc/self/cgroup", MAX_TEXT, &own);

	memset(map, 0, sizeof(*map));
	if (r == 0)
		r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", MAX_TEXT, &mounts);
	if (r < 0) {
		errno = -r;
		return ward_fail_errno(e, "cannot read where the cgroups are from /proc/self");
	}
	r = cgroup_map_parse(map, buf_text(&mounts), buf_text(&own));
	return r < 0 ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

void cgroup_map_clear(struct cgroup_map *map)
{
	for (unsigned i = 0; i < CG_PLACES; i++) {
		free(map->dir[i]);
		free(map->mount[i]);
	}
	memset(map, 0, sizeof(*map));
}
