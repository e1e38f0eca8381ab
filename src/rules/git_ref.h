/* Refs: their names, the files that hold one, packed-refs and FETCH_HEAD. Pure functions. */
#ifndef WARD_RULES_GIT_REF_H
#define WARD_RULES_GIT_REF_H

#include "rules/git_name.h"

/* Whether n bytes are a component that a ref's name may have: git check-ref-format, and no "-" or
 * "." in front. */
bool git_ref_component_ok(const char *s, size_t n);

/* Whether n bytes are a full name: "refs/", then at least one component, each of them allowed. */
bool git_ref_name_ok(const char *s, size_t n);

enum git_ref_kind {
	GIT_REF_BAD,
	GIT_REF_ID,      /* *ret is the id's digits */
	GIT_REF_SYMBOLIC /* *ret is the full name of another ref */
};

/* Reads a file that holds one ref: an id and a newline, or "ref: ", a name and a newline; nothing
 * else. *ret points into bytes and is ret_n long. */
enum git_ref_kind git_ref_read(const void *bytes, size_t n, unsigned hash, const char **ret,
			       size_t *ret_n);

/* The same for HEAD, which may name only a ref below refs/heads/. */
enum git_ref_kind git_head_read(const void *bytes, size_t n, unsigned hash, const char **ret,
				size_t *ret_n);

/* One ref of packed-refs, valid during the call; not NUL-terminated. */
struct git_packed_ref {
	const char *name, *id;
	size_t name_n;
	const char *peeled; /* what an annotated tag leads to; NULL: the file does not say */
};

/* Gets each ref in order; anything but 0 stops the reading. */
typedef int git_packed_fn(void *ctx, const struct git_packed_ref *ref);

/* Reads packed-refs: header line, "ID NAME", "^ID". fn may be NULL. Returns 0, what fn stopped
 * with, or -EINVAL with static text in *ret_why. */
int git_packed_read(const void *bytes, size_t n, unsigned hash, git_packed_fn *fn, void *ctx,
		    const char **ret_why);

/* Whether bytes are a FETCH_HEAD: lines "ID TAB [not-for-merge] TAB text", or nothing. */
bool git_fetch_head_ok(const void *bytes, size_t n, unsigned hash);

/* Whether bytes are lines of one id each; `least` is the smallest number of them. */
bool git_id_lines_ok(const void *bytes, size_t n, unsigned hash, size_t least);

#endif
