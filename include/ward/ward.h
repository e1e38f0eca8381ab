/*
 * libward: run commands that are not trusted in sandboxes. The one public header.
 *
 * A spec says what shall run under which policy; a plan says what would happen. What can fail returns 0 or more, or a
 * negative errno with *e filled (place, reason, remedy); e may be NULL. The library never prints, never exits, installs
 * no signal handler, changes no signal mask, environment, umask or current directory, and reaps no child but its own, which no
 * SIGCHLD and no waitpid(-1) of the host program ever sees. Handles are opaque. Different handles may be used by different threads at the same
 * time, and so may one handle, except that freeing it must be the last thing that happens to it. Strings are UTF-8 and
 * copied. Descriptors that a function returns are close-on-exec; who owns them is said with each function.
 *
 * Policies are read and sandboxes supervised by another process: the program `ward` that is installed with this library,
 * started afresh, never a fork of the host program. It gets the host program's environment and current directory, so relative
 * paths mean what they mean for the host program at the time of ward_plan().
 */
#ifndef WARD_WARD_H
#define WARD_WARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARD_API __attribute__((visibility("default")))

struct ward_spec;		/* what shall run */

struct ward_error {
	int code;		/* positive errno; 0: none */
	char what[512];		/* the place: what was being done; may be "" */
	char why[768];		/* the reason */
	char remedy[512];	/* what can be done about it, "" if nothing is known */
};

/* The version of the library, "1.2.3". Static text. */
WARD_API const char *ward_version(void);

/* Frees a text that a function handed out; NULL is fine. */
WARD_API void ward_free(void *text);

/* ---- what shall run ---- */

/* A spec with the built-in defaults: NULL when out of memory. The caller frees it. */
WARD_API struct ward_spec *ward_spec_new(void);
/* NULL is fine. A sandbox that was started from it does not mind. */
WARD_API void ward_spec_free(struct ward_spec *s);
/* The program `ward`, where it is not installed beside the library (../bin/ward) nor in PATH. */
WARD_API int ward_spec_program(struct ward_spec *s, const char *path, struct ward_error *e);
/* The policy file; without one, ward.yaml in the workspace, where there is one. */
WARD_API int ward_spec_policy(struct ward_spec *s, const char *file, struct ward_error *e);
/* The project directory; without one the policy's, or the current directory. */
WARD_API int ward_spec_workspace(struct ward_spec *s, const char *dir, struct ward_error *e);
/* Where the command starts; without it the workspace. */
WARD_API int ward_spec_directory(struct ward_spec *s, const char *dir, struct ward_error *e);
/* Sets a field of the policy: "resources.memory_limit", "2Gi". See ward.yaml(5). What the field does not take is refused by ward_plan(). */
WARD_API int ward_spec_set(struct ward_spec *s, const char *field, const char *value, struct ward_error *e);
/* Adds an entry to a field that is a list: "process.env", "LANG=C". */
WARD_API int ward_spec_add(struct ward_spec *s, const char *field, const char *value, struct ward_error *e);
/* One more file or directory of the host. at: where it is inside; NULL: at the same path. A relative path is made absolute now. */
WARD_API int ward_spec_mount(struct ward_spec *s, const char *path, const char *at, int writable, struct ward_error *e);
/* Whether the fields may allow more than the policy file does; without it they can only narrow. */
WARD_API int ward_spec_widen(struct ward_spec *s, int widen);
/* The command, NULL-terminated. */
WARD_API int ward_spec_command(struct ward_spec *s, const char *const argv[], struct ward_error *e);

/* What would happen, as one JSON object (that of `ward plan --json`); nothing is started. The caller frees *ret_json with ward_free(). */
WARD_API int ward_plan(const struct ward_spec *s, char **ret_json, struct ward_error *e);

#ifdef __cplusplus
}
#endif
#endif
