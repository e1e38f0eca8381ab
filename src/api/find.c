/*
 * Finding the program `ward`. In: the path that the host program gave, or none. Out: a path. Beside
 * the code that this is (the shared library, or the program it was linked into) stands the one that
 * was installed with it; then the place it was built for; then PATH, where only absolute
 * directories count. A set-uid host program has no PATH here.
 */
#include "api/launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* "7f00-7f10 r-xp ... /usr/lib/libward.so.1": the path, if the address lies in this mapping. */
static const char *mapped_file(char *line, uintptr_t address)
{
	char *end, *path = strchr(line, '/');
	uintptr_t from = strtoul(line, &end, 16);
	uintptr_t to = *end == '-' ? strtoul(end + 1, NULL, 16) : 0;

	if (!path || address < from || address >= to)
		return NULL;
	path[strcspn(path, "\n")] = '\0';
	return path;
}

/* The file that this very code was loaded from. */
static char *own_file(void)
{
	auto_file maps = fopen("/proc/self/maps", "re");
	auto_free char *line = NULL;
	size_t room = 0;

	while (maps && getline(&line, &room, maps) > 0) {
		const char *path = mapped_file(line, (uintptr_t)own_file);

		if (path)
			return strdup(path);
	}
	return NULL;
}

static char *beside(void)
{
	auto_free char *own = own_file();
	char *path = NULL, *slash = own ? strrchr(own, '/') : NULL;

	if (!slash)
		return NULL;
	*slash = '\0';
	return asprintf(&path, "%s/%s", own, WARD_PROGRAM_NEXT) < 0 ? NULL : path;
}

static char *in_path(void)
{
	const char *at = secure_getenv("PATH");

	for (; at && *at; at += strspn(at, ":")) {
		size_t n = strcspn(at, ":");
		char *path = NULL;

		if (*at == '/' && asprintf(&path, "%.*s/ward", (int)n, at) >= 0) {
			if (access(path, X_OK) == 0)
				return path;
			free(path);
		}
		at += n;
	}
	return NULL;
}

static char *built_for(void)
{
	return strdup(WARD_PROGRAM_BUILT_FOR);
}

int launch_find(const char *program, char **ret_path, struct ward_err *e)
{
	static char *(*const places[])(void) = { beside, built_for, in_path };

	if (program) {
		*ret_path = strdup(program);
		return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		auto_free char *path = places[i]();

		if (path && access(path, X_OK) == 0) {
			*ret_path = take_ptr(path);
			return 0;
		}
	}
	ward_fail(e, ENOENT,
		  "the program `ward` was found neither next to the library (%s) nor in PATH",
		  WARD_PROGRAM_NEXT);
	return ward_remedy(e, "install it there, or set its path with ward_spec_program()");
}
