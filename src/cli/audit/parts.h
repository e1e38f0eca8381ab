/* What the words of ward audit share. */
#ifndef WARD_CLI_AUDIT_PARTS_H
#define WARD_CLI_AUDIT_PARTS_H

#include "audit/lines.h"
#include "cli/cli.h"

/* What of a journal is asked for. Texts are borrowed. */
struct audit_filter {
	const char *kinds, *actions, *host; /* lists with commas; NULL: all */
	uint64_t since_us, until_us;        /* 0: no bound */
};

/* Of the options; an unknown kind, action or time is refused with the nearest known one. */
must_check int audit_filter_read(const struct options *o, struct audit_filter *ret,
				 struct ward_err *e);
/* Pure. */
bool audit_filter_passes(const struct audit_filter *f, const struct ward_event *v);

/* The run that a word means: its id or an unambiguous beginning or end of it; NULL: the last one of
 * this directory. The caller frees. */
must_check int audit_find_run(int audit_fd, const char *word, char **ret_run, struct ward_err *e);
/* The first event of a run, into scratch. False: it cannot be read. */
bool audit_first(int audit_fd, const char *run, char scratch[EVENT_LINE_MAX],
		 struct ward_event *ret);

/* The runs that the words behind the first one name, or all; the last one of this directory where
 * there is none. */
must_check int audit_runs(const struct options *o, int audit_fd, struct strv *ret,
			  struct ward_err *e);

/* Where output goes. */
struct audit_out {
	int fd, error;    /* errno of the first failure */
	const char *path; /* borrowed; NULL: standard output */
	char *temporary;  /* owned */
	bool shared;      /* others may read the file */
};

/* path: a file that appears whole at the end, or that grows (directly); NULL or "-": standard
 * output. */
must_check int audit_out_open(struct audit_out *o, const char *path, bool directly,
			      struct ward_err *e);
/* Writes and empties bytes. False: output is closed. */
bool audit_out_write(struct audit_out *o, struct buf *bytes);
/* Puts the file into its place, or takes it away where something failed. */
must_check int audit_out_close(struct audit_out *o, struct ward_err *e);

/* Every event of a run in order, then what the index has of it that is not about its journal; run
 * NULL: of the index. */
void audit_each(int audit_fd, const char *run, void (*see)(void *with, const struct ward_event *v),
		void *with);
int audit_metrics(struct options *o, int audit_fd);
int audit_report(struct options *o, int audit_fd);
int audit_forward(struct options *o, int audit_fd);
int audit_send(struct options *o, int audit_fd);
int audit_export(struct options *o, int audit_fd);
int audit_show(struct options *o, int audit_fd);
int audit_verify(struct options *o, int audit_fd);
int audit_ls(struct options *o, int audit_fd);
int audit_prune(struct options *o, int audit_fd);
/* Prunes by the rule that was kept with --always; nothing where there is none. */
void audit_prune_by_rule(int audit_fd);

#endif
