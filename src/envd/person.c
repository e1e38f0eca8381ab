/*
 * Users of the sandbox. In: names that clients give. Out: the one user that all processes of a
 * sandbox are, under its name, or under "root" where the template gives that name a home of its own
 * (/root, writable); every other name is refused. Nothing in a sandbox ever has root's id or
 * rights. The files are read by hand: ward-envd is static, and libc would load libraries of the
 * sandbox to look up names.
 */
#include "envd/person.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT_HOME "/root"

/* The line of a file like passwd whose field `id_field` is the number; fields as written. */
static bool find_line(const char *file, unsigned id, char *line, size_t n, char *fields[7])
{
	auto_file f = fopen(file, "re");

	while (f && fgets(line, (int)n, f)) {
		char *at = line, *end;
		size_t count = 0;

		line[strcspn(line, "\n")] = '\0';
		while (count < 7 && at)
			fields[count++] = strsep(&at, ":");
		if (count < 3)
			continue;
		while (count < 7)
			fields[count++] = line + strlen(line);
		errno = 0;
		if (strtoul(fields[2], &end, 10) == id && !*end && end != fields[2] && !errno)
			return true;
	}
	return false;
}

static bool find_root(struct person *ret)
{
	struct stat st;

	if (lstat(ROOT_HOME, &st) < 0 || !S_ISDIR(st.st_mode) || access(ROOT_HOME, W_OK) < 0)
		return false;
	snprintf(ret->name, sizeof(ret->name), "root");
	snprintf(ret->home, sizeof(ret->home), ROOT_HOME);
	return true;
}

int person_find(const char *name, struct person *ret)
{
	char line[1024], *fields[7];

	if (name && strcmp(name, "root") == 0 && find_root(ret))
		return 0;

	if (!find_line("/etc/passwd", getuid(), line, sizeof(line), fields)) {
		fields[0] = (char[]){ "user" };
		fields[5] = (char[]){ "/tmp" };
	}
	if (name && *name && strcmp(name, fields[0]) != 0)
		return -ENOENT;
	snprintf(ret->name, sizeof(ret->name), "%s", fields[0]);
	snprintf(ret->home, sizeof(ret->home), "%s", *fields[5] == '/' ? fields[5] : "/");
	return 0;
}

int person_path(const struct person *p, const char *path, char ret[PATH_MAX])
{
	int n;

	if (!*path)
		return -EINVAL;
	if (strcmp(path, "~") == 0)
		n = snprintf(ret, PATH_MAX, "%s", p->home);
	else if (strncmp(path, "~/", 2) == 0)
		n = snprintf(ret, PATH_MAX, "%s/%s", p->home, path + 2);
	else if (*path == '/')
		n = snprintf(ret, PATH_MAX, "%s", path);
	else
		n = snprintf(ret, PATH_MAX, "%s/%s", p->home, path);
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	/* as path.Join does: "a//b/" is "a/b"; ".." is left to the kernel, which follows links */
	for (char *from = ret, *to = ret;; from++) {
		if (*from == '/' && (from[1] == '/' || (!from[1] && from != ret)))
			continue;
		if (*from == '/' && from[1] == '.' && (from[2] == '/' || !from[2])) {
			from++;
			if (!from[1] && to == ret)
				*to++ = '/';
			continue;
		}
		*to++ = *from;
		if (!*from)
			break;
	}
	return 0;
}

static void name_of(const char *file, unsigned id, char *ret, size_t n)
{
	char line[1024], *fields[7];

	if (find_line(file, id, line, sizeof(line), fields))
		snprintf(ret, n, "%s", fields[0]);
	else
		snprintf(ret, n, "%u", id);
}

void person_owner(uid_t uid, char *ret, size_t n)
{
	name_of("/etc/passwd", uid, ret, n);
}

void person_group(gid_t gid, char *ret, size_t n)
{
	name_of("/etc/group", gid, ret, n);
}
