/* Parts of ward learn: what a run needed, and the policy that it makes. */
#ifndef WARD_CLI_LEARN_H
#define WARD_CLI_LEARN_H

#include "cli/cli.h"

/* A way out that was asked for. */
struct learn_way {
	char *host;      /* owned; a name or an address */
	unsigned port;   /* 0: the name alone */
	char mode[8];    /* tls, http, tcp; "": it was refused */
	char reason[24]; /* why it was refused, tables/egress.def; "": it was not */
};

/* What one run asked for, by its journal. */
struct learn_needs {
	struct strv missing, hosts_path; /* pairs: the path inside, and the host's */
	struct learn_way *ways;          /* owned */
	size_t way_count, way_cap;
	struct strv calls, call_remedies; /* pairs: system calls that were refused */
	struct strv programs;             /* that were started */
	struct strv names;                /* that were asked for and allowed */
	uint64_t lost;                    /* events that are not in the journal */
};

/* Reads the journal of a run. */
must_check int learn_read(const char *run, struct learn_needs *ret, struct ward_err *e);
void learn_needs_clear(struct learn_needs *n);

/* Something of the host's that is shown. */
struct learn_mount {
	char *path, *at; /* owned; at: NULL: the same */
};

/* What has been learned: everything that goes into the policy beside what the user said. */
struct learn_policy {
	struct learn_mount *mounts; /* owned */
	size_t mount_count;
	struct strv programs; /* filesystem.programs */
	/* presets: given beside auto while it learns, then all that were used */
	struct strv toolchains;
	struct strv rules; /* of the egress list, as a document has them */
	bool build;        /* process.syscalls: build */
	bool writes;       /* the workspace was changed */
};

void learn_policy_clear(struct learn_policy *p);
/* Adds a mount, unless it is given already. False: it was. */
bool learn_add_mount(struct learn_policy *p, const char *path, const char *at);
/* One mount as a document has it, {path: ..., at: ...}. False: no document can hold its name. */
must_check bool learn_mount_text(const struct learn_mount *m, struct buf *out);
/* A rule for one host: exact, with its port, and its mode where the port does not say it. False: no
 * document can hold it. */
must_check bool learn_rule_text(const char *host, unsigned port, const char *mode, bool is_private,
				struct buf *out);
/* The document. o: the user's own fields are part of it; argv and programs stand in its
 * comments. */
must_check int learn_policy_text(const struct learn_policy *p, const struct options *o,
				 const struct strv *programs, struct buf *out, struct ward_err *e);

/* Adds it to the policy file of --merge, base being what that says: shows the difference, asks
 * unless --yes. The exit code. */
must_check int learn_merge(const struct learn_policy *p, const struct policy *base,
			   const struct options *o);

#endif
