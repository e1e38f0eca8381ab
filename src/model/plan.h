/* The plan: everything a run will do, compiled from the spec and the host's facts, const from then
 * on. */
#ifndef WARD_MODEL_PLAN_H
#define WARD_MODEL_PLAN_H

#include <sys/stat.h>

#include "base/sha256.h"
#include "model/facts.h"
#include "model/guard.h"
#include "model/limits.h"
#include "model/spec.h"
#include "rules/egress_rules.h"
#include "rules/net.h"
#include "rules/upstream.h"

/* What of the network exists inside. */
#define PLAN_NET_MATCHES_MAX 64

struct plan_net {
	bool on;
	struct rules *rules;    /* owned */
	struct upstream *proxy; /* that the gateway has to use; owned, NULL: none */
	struct net_match matches[PLAN_NET_MATCHES_MAX]; /* what the kernel brings to the gateway */
	size_t match_count;
	struct net_classes classes;
	/* of the policy; more than fit: not on a kernel without nf_tables */
	uint16_t ports[NET_PORTS_MAX];
	size_t port_count;
	bool ports_left_out;
	/* ports inside, and where each is on the host's loopback */
	struct plan_port {
		uint16_t host, inside;
	} published[NET_PUBLISHED_MAX];
	size_t published_count;
};

/* A cached /etc that is in use: plan/etc_cache.h. */
struct etc_entry;
struct etc_cache {
	char *list; /* owned */
	const struct etc_entry *entries;
	size_t entry_count;
	char *path;  /* of the directory; owned; NULL: there is none */
	int lock_fd; /* for as long as it is in use; -1: none */
	int dir_fd;  /* of what it lies in, beside the list; -1: none */
	/* as root: a copy of it that a sandbox can mount; -1: none */
	int tree_fd;
	bool refused; /* root may not make that copy: one could never be used */
};

#define ETC_CACHE_NONE                                                                             \
	{                                                                                          \
		.lock_fd = -1, .dir_fd = -1, .tree_fd = -1                                         \
	}

/* An image that is held: no process removes it until image_clear(). */
struct image {
	char digest[SHA256_HEX]; /* "": a directory that is used where it is */
	char *root;              /* the tree, absolute, links resolved */
	int lock_fd;             /* owned; -1: none, or a plan's own has it (live) */
	struct strv env;         /* NAME=VALUE */
	struct strv command;     /* entrypoint and arguments; empty: the image names none */
	char *user, *workdir;    /* NULL: the image does not say */
};

/* More repositories than these in one workspace are read-only: the disk limit is held in at most 64
 * directories. */
#define GIT_VIEWS_MAX 48

/* Those of a run. Owned by its plan. */
struct git_views {
	int lock_fd;       /* STATE/git/RUN, locked while this process lives; -1: none */
	char *path;        /* of that; owned */
	struct strv dirs;  /* each view, absolute */
	struct strv roots; /* the number of the writable tree that each lies in, as text */
	/* the path of each git directory in that tree, "" for the tree itself */
	struct strv names;
	size_t left; /* repositories behind the bound, which git can only read inside */
	/* on disk: those of this run, and those that former runs of the review left */
	size_t made;
	bool kept;   /* the review needs them after the run */
	bool failed; /* they are not imported yet: `ward recover` tries again */
};

/* Whom the agent is on the host. */
enum ids_mode {
	IDS_OWN,    /* ordinary user: own uid */
	IDS_MAPPED, /* root: an unprivileged uid of its own, writable trees id-mapped */
	IDS_OWNER,  /* root without idmap: the workspace's owner */
	/* root without idmap, workspace owned by root: uid 0 without capabilities */
	IDS_ROOT
};

struct plan_ids {
	enum ids_mode mode;
	uid_t host_uid;
	gid_t host_gid;
	uid_t inside_uid; /* 1000 */
	gid_t inside_gid;
	uid_t owner_uid; /* of the workspace's root directory */
	gid_t owner_gid;
};

enum mount_kind { MOUNT_BIND, MOUNT_TMPFS, MOUNT_PROC, MOUNT_DEV, MOUNT_LINK, MOUNT_FILE };

struct plan_mount {
	enum mount_kind kind;
	const char *source;     /* BIND: host path; LINK: its target; FILE: its content */
	const char *target;     /* absolute, cleaned */
	uint64_t bytes, inodes; /* TMPFS; 0: the kernel's default */
	unsigned mode;          /* TMPFS, FILE: permission bits */
	bool writable;
	bool noexec;
	bool is_file; /* BIND: of a file */
	/* BIND: the workspace, a host mount, a git directory: identity is checked */
	bool from_policy;
	bool system; /* the same for every policy: ward's own root */
	/* from_policy, of ward's own state: a cache or a home; neither guarded nor swept */
	bool volume;
	/* from_policy, read-only: part of a toolchain; only credentials in it are hidden */
	bool toolchain;
	bool kept; /* it is there already, in the kept /etc: nothing is made */
	/* its target lies in another bind: it must exist there, nothing is created */
	bool in_bind;
	dev_t dev; /* from_policy: what the plan saw */
	ino_t ino;
	/* from_policy, as root: a detached copy, id-mapped where that was possible; owned; -1:
	 * none */
	int tree_fd;
	bool mapped; /* tree_fd is id-mapped */
	/* BIND: a private git directory, or what of the host's repository it shows (git_view.h) */
	bool view;
	/* BIND: the lower layer of an overlay, what is written goes to the run's review */
	bool review;
};

/* An image as the root: the tree under everything that ward itself makes. */
struct plan_image {
	const char *root; /* absolute, resolved */
	dev_t dev;        /* what the plan saw */
	ino_t ino;
	/* as root: a detached copy, id-mapped where that was possible; owned; -1: none */
	int tree_fd;
	bool mapped;
	const char *workdir; /* a directory to make that the image lacks, NULL: none */
	/* every mount of the plan: what they are mounted on is made first */
	const struct plan_mount *points;
	size_t point_count;
};

/* What every sandbox on this host sees, whatever its policy: read while the policy still is. */
struct plan_system {
	struct plan_mount *mounts;
	size_t mount_count, mount_cap;
	struct strv strings;
	struct facts facts;
	struct plan_image *image; /* NULL: the host's own directories; owned */
	/* path NULL: every entry of /etc is made or mounted by itself */
	struct etc_cache etc;
	bool etc_wanted;       /* there could be one */
	struct stat etc_stamp; /* of the host's /etc, before it was read, if so */
	time_t etc_read;       /* when that was */
};

/* of the policy and of repositories: as many descriptors as one message of the kernel brings, with
 * a few others */
#define PLAN_MOUNTS_MAX 240
#define PLAN_DEVICES_MAX 80

/* A device node that appears in /dev, where it is outside. */
struct plan_device {
	const char *path;
	dev_t device;
	/* as root: a file system with a node of the agent's own, called "node"; owned; -1: the
	 * host's node is opened */
	int tree_fd;
};

/* A file of ward's own in the sandbox's /proc. */
struct plan_text {
	const char *path, *text;
};

struct plan_devices {
	struct plan_device items[PLAN_DEVICES_MAX];
	size_t len;
};

struct plan_gpus {
	struct plan_text texts[PLAN_DEVICES_MAX];
	size_t text_count;
	struct strv names; /* for the reader */
	bool driver_bound; /* an image got the driver's libraries */
};

/* Which programs may run: process.commands. Paths are those inside, no link leads there. */
/* A program of which words decide, or a person: ward's stand-in lies over it, and ward-init starts
 * the program itself. */
struct plan_guarded {
	struct strv names; /* its paths inside, the first without links */
	char *host;        /* its file; owned */
	struct strv rules; /* "allow|ask|deny PATTERN" (rules/command_rule.h) */
};

struct plan_commands {
	bool listed;        /* there is an allow list: what is not in files cannot be executed */
	struct strv files;  /* a directory ends in "/" */
	struct strv denied; /* covered by an empty file */
	struct strv roles;  /* what the interpreters of the list are, in words */
	char *loader;       /* of the programs, which is replaced; owned; NULL: none */
	struct plan_guarded *guarded; /* owned */
	size_t guarded_count;
};

enum level { LEVEL_LANDLOCK, LEVEL_NAMESPACES };

struct certs;
struct plan_tape;
struct secrets;
struct ssh_link;
struct commands;
struct inside_socket;

/* What a run of the plan holds open and changes while it lives; everything else is const once
 * the plan is compiled. */
struct plan_live {
	struct git_views *views; /* private git directories; owned; NULL: none */
	/* that fetches and renews them; owned; NULL: there are no grants, or nothing starts */
	struct secrets *secrets;
	struct ssh_link *ssh;            /* the ssh-agent inside; owned; NULL: none */
	struct commands *commands;       /* answers stand-ins (run/commands.h); owned; NULL: none */
	struct children *children;       /* starts children (run/children.h); owned; NULL: none */
	struct inside_socket *proposals; /* ward-ask's (run/proposals.h); owned; NULL: none */
	struct canaries *canaries;       /* files of canary.files; owned; NULL: none */
	struct plan_tape *tape;          /* a recording; owned; NULL: none */
	/* with inspect rules: filled by their gateway before the sandbox is built; NULL: none */
	struct certs *certs;
	/* of the volumes and of the image: they are in use for as long as the plan is */
	int *lock_fds;
	size_t lock_count;
	/* writable trees, the workspace first: what is found in them, and what becomes of it */
	struct guard_root *roots;
	size_t root_count;
};

struct plan {
	struct plan_live *live; /* owned; NULL only in a plan that was not compiled */
	const char *engine;
	enum level level;
	const struct spec *spec; /* borrowed */
	struct facts facts;
	struct plan_ids ids;
	struct plan_limit limits[LIMITS];
	const struct plan_system *system; /* borrowed, or own_system */
	struct plan_system *own_system;
	/* the system's first, then in the order of mounting; texts live in `strings` */
	struct plan_mount *mounts;
	size_t mount_count, mount_cap;
	struct plan_net net;
	struct image image; /* root NULL: the host's own directories */
	/* the command: the spec's, or the image's own; NULL: none */
	char *const *argv;
	struct strv inner_run;  /* with an inner runtime: its words in front of the command's */
	struct strv inner_exec; /* ... in front of those of one more command */
	/* ... in front of those of a copy; empty: ward-init copies by itself */
	struct strv inner_copy;
	/* ... "key: value" of what its checkpoints depend on; empty: it makes none */
	struct strv inner_same;
	/* with an inner runtime: all that ward-init starts, NULL-terminated; NULL: argv. The words
	 * are not its own */
	char **started;
	struct strv env;                /* NAME=VALUE, complete */
	char *cwd;                      /* inside */
	char *workspace;                /* absolute, cleaned, resolved */
	struct strv strings;            /* what the mounts' texts live in */
	struct plan_gpus *gpus;         /* NULL: none; owned */
	struct plan_devices *devices;   /* of those, or of the inner runtime; NULL: none; owned */
	struct plan_commands *commands; /* NULL: no list; owned */
	/* files and directories of them that a person is asked about: as the policy has them, and
	 * without links */
	struct strv asks, asks_real;
	struct strv toolchains; /* presets in force */
	struct strv tool_rows;  /* what they show, for a reader: paths with stars */
	struct strv tool_bins;  /* their directories for PATH, behind the system's */
	struct strv tool_env;   /* NAME=VALUE, for them */
	/* the command as the caller's PATH has it, outside of /usr; owned; NULL: not so */
	char *own_program;
	/* lines for everybody who runs it, also without a terminal; in the notes, too */
	struct strv loud;
	/* what the user should know: groups that stay, weaker choices */
	struct strv notes;
	bool watch;     /* some limit is held by the watch */
	bool review;    /* changes of the workspace are kept aside */
	bool proposals; /* ward-ask is inside */
};

/* Whether `ward` inside is ward's client (guest/stand_in.c). */
static inline bool plan_has_client(const struct plan *p)
{
	return p->spec->policy.proc_children || p->spec->channel;
}

#endif
