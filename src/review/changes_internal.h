/* Shared by the files that read a review. */
#ifndef WARD_REVIEW_CHANGES_INTERNAL_H
#define WARD_REVIEW_CHANGES_INTERNAL_H

#include "base/walk.h"
#include "review/changes.h"
#include "guard/guard.h"

/* A list of names to hide that a directory of the workspace has. */
struct nested_list {
	struct ignore *list;
	char *dir; /* relative to the workspace; owned */
};

/* Paths that were applied from the review, sorted. */
struct applied_list {
	struct applied_path {
		char *path;  /* owned */
		uint64_t ns; /* when */
	} * items;
	size_t len, cap;
};
/* Reads the lines of them. A pure function; -ENOMEM only. */
must_check int changes_applied_read(const char *text, size_t n, struct applied_list *ret_list);
void changes_applied_clear(struct applied_list *l);
/* When path was applied last, 0: never. */
uint64_t changes_applied_at(const struct applied_list *l, const char *path);
void changes_applied_line(struct buf *out, const char *path, uint64_t ns);

/* One reading of a review. */
struct reading {
	const struct review *review;
	struct changes *changes;
	struct progress *progress;
	struct ward_err *e;
	/* what the workspace has in place of the directory that is being read; -1: none; owned */
	int lower_fd;
	bool clock_set_back; /* times tell nothing */
	uint64_t list_bytes; /* what the list takes so far */
	size_t whiteouts;
	bool maybe_lost; /* some copy lost its original */
	bool applied;    /* something of the review was applied before: */
	struct applied_list applied_list;
	struct ignore *hide; /* the policy's */
	struct nested_list *nested;
	size_t nested_count, nested_cap;
	struct strv hidden; /* sorted: what was hidden when the runs began */
};

/* The lists of hidden names: from the record, from the workspace's own .aiignore files as they are
 * now. */
must_check int changes_hide_begin(struct reading *s);
void changes_hide_end(struct reading *s);
/* The directory at path is entered; s->lower_fd is what the workspace has there. */
must_check int changes_hide_enter(struct reading *s, const char *path, size_t path_len);
/* Whether a name was or would be hidden; its parents were asked before. */
bool changes_is_hidden(const struct reading *s, const char *path, bool as_dir);

bool changes_is_whiteout(const struct stat *st);

#endif
