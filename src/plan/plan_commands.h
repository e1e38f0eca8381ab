/* Shared by the files of process.commands: programs as the sandbox has them. Private to
 * src/plan. */
#ifndef WARD_PLAN_PLAN_COMMANDS_H
#define WARD_PLAN_PLAN_COMMANDS_H

#include <sys/stat.h>

#include "plan/plan_root.h"
#include "rules/program.h"

#define FIELD "process.commands"

/* A file of the host's, and where it is inside. */
struct found {
	char *inside; /* owned; no link leads there any more */
	char *host;   /* owned; likewise */
	struct stat st;
	bool noexec;
	struct program program;
};

static inline void found_clear(struct found *f)
{
	free(f->inside);
	free(f->host);
	*f = (struct found){ 0 };
}

#define auto_found __attribute__((cleanup(found_clear))) struct found

/* Looks at a path as the sandbox has it. False: nothing is there. */
bool commands_locate(const struct plan *p, const char *path, struct found *ret);
/* A program as a command of the sandbox would find it. */
bool commands_find(const struct plan *p, const char *name, struct found *ret);
bool commands_same(const struct stat *a, const struct stat *b);
/* PATH inside, and its next directory, which the caller frees; NULL: there are no more. */
const char *commands_path(const struct plan *p);
char *commands_next_dir(const char **path);
/* The loader of an allowed program is replaced. */
must_check int commands_add_loader(struct plan *p, const char *name, const char *path,
				   struct ward_err *e);
int commands_refuse_place(const char *name, const struct found *f, struct ward_err *e);

/* Programs of which words decide, or a person (plan_guarded.c). Gathers them, with their rules,
 * before the lists of programs are made. */
must_check int plan_add_guarded(struct plan *p, struct ward_err *e);
/* Covers their copies, and other names, among the files that the allow list makes executable. */
must_check int plan_guard_copies(struct plan *p, struct ward_err *e);
/* Whether the path inside is one of them. */
bool plan_is_guarded(const struct plan_commands *c, const char *inside);
void plan_guarded_clear(struct plan_guarded *g);

#endif
