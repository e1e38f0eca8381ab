/* The judgement over one file of a git directory: name, type, mode and content in one place. A pure
 * function. */
#ifndef WARD_RULES_GIT_JUDGE_H
#define WARD_RULES_GIT_JUDGE_H

#include <sys/types.h>

#include "rules/git_path.h"

enum git_verdict {
	GIT_ADMIT,
	GIT_REPORT,  /* admitted, and worth a line: *why says what it changes */
	GIT_CONFIRM, /* well-formed, but it names addresses: to be confirmed where they are new */
	GIT_COPY, /* an object with a second hard link (git clone of a path makes them): replace it
		     with a copy */
	GIT_DERIVED, /* remove it and have git make it again from what was admitted */
	GIT_DROP,    /* a lock or a temporary file: remove it */
	GIT_REFUSE
};

struct git_file {
	const char *path;       /* relative to the git directory, no slash at its ends; "" is the
			     directory itself */
	enum git_dir_kind kind; /* of that git directory */
	unsigned hash;          /* GIT_SHA1 or GIT_SHA256: git_config_hash() of the repository's
			  configuration */
	mode_t mode;            /* as stat gives it */
	nlink_t links;
	uint64_t size;        /* of the whole file */
	const uint8_t *bytes; /* its beginning: git_judge_needs() of it, or all if it is shorter */
	size_t n;
};

struct git_judged {
	enum git_verdict verdict;
	enum git_form form;
	enum git_dir_kind kind; /* of the innermost git directory */
	bool points;   /* it names a place that the caller must check: core.worktree, gitdir, a URL
			that is a path */
	char why[256]; /* plain words for every verdict but ADMIT */
};

/* How many leading bytes git_judge() needs of a regular file at this path; SIZE_MAX: all of them.
 * Files larger than *ret_max are refused, whatever they hold, and need not be read. */
size_t git_judge_needs(const char *path, enum git_dir_kind kind, unsigned hash, size_t *ret_max);

/* Judges one regular file or directory; anything else (link, FIFO, socket, device) is refused, and
 * so is a file with a set-id bit, or with a second hard link if it is no object. */
struct git_judged git_judge(const struct git_file *file);

#endif
