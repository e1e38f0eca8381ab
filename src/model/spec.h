/* What the user asked for: argv and policy file brought together by precedence and trust. */
#ifndef WARD_MODEL_SPEC_H
#define WARD_MODEL_SPEC_H

#include "base/progress.h"
#include "base/sha256.h"
#include "policy/policy.h"

struct inner;
struct checkpoint;

/* One "field, value" that an option of the command line sets. */
struct spec_option {
	const char *field; /* policy path, "filesystem.host_mounts" */
	const char *value;
	const char *option; /* as the user wrote it, for messages */
	bool append;
	bool reach; /* a grant: its hosts are allowed, too, where nothing allows them yet */
	bool below; /* a policy file goes over it, as over a profile */
};

struct spec_request {
	const char *profile; /* --profile, NULL: none */
	/* of the environment: where neither --profile nor the policy file names one; NULL: none */
	const char *default_profile;
	const char *policy_file; /* -p, NULL: look for ward.yaml in the workspace */
	const char *workspace;   /* -w, NULL: the policy's, or the current directory */
	/* -C, NULL: the workspace, or where the caller stands inside it */
	const char *cwd;
	const struct spec_option *options;
	size_t option_count;
	bool widen;
	/* policy_file is not the command line's, but of the environment: it may lie in the
	 * workspace only if its content was accepted */
	bool policy_unnamed;
	const char *isolation; /* of the environment, below the options; NULL: none */
	/* of the environment: the run that starts this one as its child; NULL: none */
	const char *parent;
	/* of the environment: its socket for messages, where it is such a child; NULL: none */
	const char *channel;
	/* of the environment: the call of a tool that the run is, as call_name() writes it; NULL:
	 * none */
	const char *tool;
	/* of the plan and the sweep; borrowed, NULL: not shown */
	struct progress *progress;
	bool starts; /* it will be run: volumes that it names are made */
	/* NAME=VALUE that the caller itself sets inside, NULL-terminated; NULL: nothing */
	const char *const *own_env;
	bool tty; /* -t: a terminal inside, whatever 0-2 are */
	/* more of what the sandbox does that is looked at, OBSERVE_*; 0: what audit.level says */
	unsigned observe;
	bool image_command;               /* there is no CMD: the image's own is meant */
	const struct checkpoint *restore; /* that it goes on from; borrowed, NULL: none */
	/* the id of the run under review that it continues; borrowed, NULL: a new run */
	const char *continued;
	char *const *argv; /* CMD..., NULL for plan and check */
};

struct spec {
	char run_id[24];      /* a new one, or that of the run that is continued */
	bool continued;       /* ... which was under review: this one adds to its changes */
	struct policy policy; /* paths of host mounts are absolute */
	char *policy_file;    /* absolute; NULL: none in force */
	bool widened;         /* options may grant more than that file */
	char *profile;        /* its name; NULL: none */
	char *profile_file;   /* absolute, links resolved; NULL: built in */
	/* names of what the policy was read from, as origins count them; the first is nobody's */
	struct strv files;
	/* of them, absolute: the user's own, which must not lie in the workspace */
	struct strv own_files;
	/* and those that nobody named, which count there only if the whole was accepted */
	struct strv unnamed_files;
	struct strv wider;       /* what the policy file and they allow beyond the rest */
	char digest[SHA256_HEX]; /* of that file and of what it extends; "": there is none */
	const char *parent;      /* the run whose child this is; borrowed, NULL: none */
	const char *channel;     /* the path of its socket for messages; borrowed, NULL: none */
	const char *tool;        /* the request's; borrowed */
	char *workspace;         /* absolute, links resolved */
	char *cwd;               /* absolute */
	bool starts;
	const char *const *own_env; /* the request's */
	char *const *argv;          /* borrowed */
	struct progress *progress;  /* the request's */
	struct strv notes;          /* for the plan's */
	struct strv metered;        /* hosts whose requests a profile's spend limit counts */
	struct strv said;           /* the same, for everybody to read */
	bool tty;
	bool below;         /* an option is below the policy file */
	unsigned observe;   /* the request's */
	bool image_command; /* the request's */
	const char *engine; /* chosen by the policy's isolation, static; NULL: native */
	/* that stands inside the native sandbox: plan/inner.h; NULL: none */
	const struct inner *inner;
	bool cwd_given;                   /* -C */
	const struct checkpoint *restore; /* the request's */
};

#endif
