/* What the user asked for: argv and policy file brought together by precedence and trust. */
#ifndef WARD_LIB_SPEC_H
#define WARD_LIB_SPEC_H

#include "base/progress.h"
#include "policy/policy.h"

struct wall;
struct checkpoint;

/* One "field, value" that an option of the command line sets. */
struct spec_option {
	const char *field;	/* policy path, "filesystem.host_mounts" */
	const char *value;
	const char *option;	/* as the user wrote it, for messages */
	bool append;
};

struct spec_request {
	const char *profile;		/* --profile, NULL: none */
	const char *policy_file;	/* -p, NULL: look for ward.yaml in the workspace */
	const char *workspace;		/* -w, NULL: the policy's, or the current directory */
	const char *cwd;		/* -C, NULL: the workspace, or where the caller stands inside it */
	const struct spec_option *options;
	size_t option_count;
	bool widen;
	struct progress *progress;	/* of the plan and the sweep; borrowed, NULL: nobody looks */
	bool starts;			/* it will be run: volumes that it names are made */
	const char *const *own_env;	/* NAME=VALUE that the caller itself sets inside, NULL-terminated; NULL: nothing */
	bool tty;			/* -t: a terminal inside, whatever 0-2 are */
	unsigned observe;		/* more of what the sandbox does that is looked at, OBSERVE_*; 0: what audit.level says */
	bool image_command;		/* there is no CMD: the image's own is meant */
	const struct checkpoint *restore;	/* that it goes on from; borrowed, NULL: none */
	char *const *argv;		/* CMD..., NULL for plan and check */
};

struct spec {
	struct policy policy;	/* paths of host mounts are absolute */
	char *policy_file;	/* absolute; NULL: none in force */
	char *profile;		/* its name; NULL: none */
	char *profile_file;	/* absolute, links resolved; NULL: built in */
	char *workspace;	/* absolute, links resolved */
	char *cwd;		/* absolute */
	bool starts;
	const char *const *own_env;	/* the request's */
	char *const *argv;	/* borrowed */
	struct progress *progress;	/* the request's */
	struct strv notes;	/* for the plan's */
	bool tty;
	unsigned observe;	/* the request's */
	bool image_command;	/* the request's */
	const char *engine;	/* chosen by the policy's isolation, static; NULL: native */
	const struct wall *wall;	/* that stands inside the native sandbox: lib/wall.h; NULL: none */
	bool cwd_given;		/* -C */
	const struct checkpoint *restore;	/* the request's */
};

/* Brings defaults, file and options together. Errors of the policy file are gathered in *errors (all at once); any
 * other refusal is in *e. Checks trust, narrowing, unsupported values. The caller frees with spec_clear(). */
must_check int spec_build(const struct spec_request *r, struct spec *ret_spec,
			  struct policy_errors *errors, struct ward_err *e);
void spec_clear(struct spec *s);

/* Makes the paths of host mounts absolute that are not yet: "~/" is the home directory, others are below base. */
must_check int spec_resolve_mounts(struct policy *p, const char *base, struct ward_err *e);

/* Reads a policy file over *p. -EINVAL: see *errors; others: *e. */
must_check int spec_read_policy(const char *path, struct policy *p, struct policy_errors *errors,
				struct ward_err *e);
/* The same over the defaults, which *p holds, and refuses a file that widens them unless its content was accepted. */
must_check int spec_read_accepted(const char *path, struct policy *p, struct policy_errors *errors, struct ward_err *e);
/* Accepts the present content of a policy file (ward trust). Writes its SHA-256 to ret_hex[65]. */
must_check int spec_trust(const char *path, char *ret_hex, struct ward_err *e);
/* The same, and appends to *wider what that very content widens (the file is read once). A file with errors is not
 * accepted: -EINVAL, see *errors. */
must_check int spec_trust_content(const char *path, struct strv *wider, struct policy_errors *errors, char *ret_hex,
				  struct ward_err *e);

/* Resolves a directory that shall be the workspace and checks it. The caller frees *ret_path. */
must_check int workspace_resolve(const char *path, char **ret_path, struct ward_err *e);
/* Refuses a path (absolute, links resolved) that is no directory, or one that holds the whole system or home. */
must_check int workspace_check(const char *resolved, struct ward_err *e);
/* Where the command starts: -C (NULL: here, where the caller stands, if it lies in the workspace, else the workspace). */
must_check int workspace_cwd(const char *workspace, const char *here, const char *wanted, char **ret_path,
			     struct ward_err *e);
/* The current directory, links resolved; one that was deleted is an error. The caller frees *ret_path. */
must_check int workspace_here(char **ret_path, struct ward_err *e);

#endif
