/* The plan: everything a run will do, compiled from the spec and the host's facts, const from then on. */
#ifndef WARD_LIB_PLAN_H
#define WARD_LIB_PLAN_H

#include "lib/certs.h"
#include "lib/etc_kept.h"
#include "lib/facts.h"
#include "lib/gpus.h"
#include "lib/guard.h"
#include "lib/images.h"
#include "lib/plan_net.h"
#include "lib/spec.h"

enum limit {
#define LIMIT(id, ...) LIMIT_##id,
#include "limits.def"
#undef LIMIT
	LIMITS
};

enum layer {
#define LAYER(id, ...) LAYER_##id,
#include "layers.def"
#undef LAYER
	LAYERS
};

enum held_by { HELD_NONE, HELD_CGROUP1, HELD_CGROUP2, HELD_RLIMIT, HELD_TMPFS, HELD_WATCH };

struct plan_limit {
	uint64_t value;		/* POLICY_NONE: off */
	enum held_by held_by;
};

/* Whom the agent is on the host. */
enum ids_mode {
	IDS_OWN,	/* ordinary user: own uid */
	IDS_MAPPED,	/* root: an unprivileged uid of its own, writable trees id-mapped */
	IDS_OWNER,	/* root without idmap: the workspace's owner */
	IDS_ROOT	/* root without idmap, workspace owned by root: uid 0 without capabilities */
};

struct plan_ids {
	enum ids_mode mode;
	uid_t host_uid;
	gid_t host_gid;
	uid_t inside_uid;	/* 1000 */
	gid_t inside_gid;
	uid_t owner_uid;	/* of the workspace's root directory */
	gid_t owner_gid;
};

enum mount_kind { MOUNT_BIND, MOUNT_TMPFS, MOUNT_PROC, MOUNT_DEV, MOUNT_LINK, MOUNT_FILE };

struct plan_mount {
	enum mount_kind kind;
	const char *source;	/* BIND: host path; LINK: its target; FILE: its content */
	const char *target;	/* absolute, cleaned */
	uint64_t bytes, inodes;	/* TMPFS; 0: the kernel's default */
	unsigned mode;		/* TMPFS, FILE: permission bits */
	bool writable;
	bool noexec;
	bool is_file;		/* BIND: of a file */
	bool from_policy;	/* BIND: the workspace, a host mount, a git directory: identity is checked */
	bool system;		/* the same for every policy: ward's own root */
	bool volume;		/* from_policy, of ward's own state: a cache or a home; neither guarded nor swept */
	bool kept;		/* it is there already, in the kept /etc: nothing is made */
	bool in_bind;		/* its target lies in another bind: it must exist there, nothing is created */
	dev_t dev;		/* from_policy: what the plan saw */
	ino_t ino;
	int tree_fd;		/* from_policy, as root: a detached copy, id-mapped where that was possible; owned; -1: none */
	bool mapped;		/* tree_fd is id-mapped */
	bool view;		/* BIND: a private git directory, or what of the host's repository it shows (git_view.h) */
	bool review;		/* BIND: the lower layer of an overlay, what is written goes to the run's review */
};

/* An image as the root: the tree under everything that ward itself makes. */
struct plan_image {
	const char *root;	/* absolute, resolved */
	dev_t dev;		/* what the plan saw */
	ino_t ino;
	int tree_fd;		/* as root: a detached copy, id-mapped where that was possible; owned; -1: none */
	bool mapped;
	const char *workdir;	/* a directory to make that the image lacks, NULL: none */
	const struct plan_mount *points;	/* every mount of the plan: what they are mounted on is made first */
	size_t point_count;
};

/* What every sandbox on this host sees, whatever its policy: read while the policy still is. */
struct plan_system {
	struct plan_mount *mounts;
	size_t mount_count, mount_cap;
	struct strv strings;
	struct facts facts;
	struct plan_image *image;	/* NULL: the host's own directories; owned */
	struct etc_kept etc;		/* path NULL: every entry of /etc is made or mounted by itself */
	bool etc_wanted;		/* there could be one */
	struct stat etc_stamp;		/* of the host's /etc, before it was read, if so */
	time_t etc_read;		/* when that was */
};

/* Reads tables/root.def against the host, and keeps the facts with it. The caller frees with plan_system_free(). */
must_check int plan_system_read(const struct facts *facts, struct plan_system **ret_system, struct ward_err *e);
/* The same without anything of the host's: for an image. */
must_check int plan_system_bare(const struct facts *facts, struct plan_system **ret_system, struct ward_err *e);
void plan_system_free(struct plan_system *system);
/* The sandbox has started: what was read of /etc is kept for the next ones, where it was not. */
void plan_system_keep(const struct plan_system *system);
/* Whether the path is in a kept /etc. */
bool plan_keeps_etc(const struct plan_system *system, const char *path);
/* The directories in /etc that tables/root.def looks into, relative to it. */
void plan_etc_parents(struct strv *dirs);

#define PLAN_MOUNTS_MAX 240	/* of the policy and of repositories: as many descriptors as one message of the kernel brings, with a few others */
#define PLAN_DEVICES_MAX 80

/* A device node that appears in /dev, where it is outside. */
struct plan_device {
	const char *path;
	dev_t device;
	int tree_fd;		/* as root: a file system with a node of the agent's own, called "node"; owned; -1: the host's node is opened */
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
	struct strv names;	/* for the reader */
	bool driver_bound;	/* an image got the driver's libraries */
};

enum rung { RUNG_LANDLOCK, RUNG_NAMESPACES };

struct plan {
	const char *engine;
	enum rung rung;
	const struct spec *spec;	/* borrowed */
	struct facts facts;
	char run_id[24];
	struct plan_ids ids;
	struct plan_limit limits[LIMITS];
	const struct plan_system *system;	/* borrowed, or own_system */
	struct plan_system *own_system;
	struct plan_mount *mounts;	/* the system's first, then in the order of mounting; texts live in `strings` */
	size_t mount_count, mount_cap;
	struct guard_root *roots;	/* writable trees: the workspace first */
	size_t root_count;
	struct plan_net net;
	struct git_views *views;	/* private git directories; owned; NULL: none */
	struct secrets *secrets;	/* that fetches and renews them; owned; NULL: there are no grants, or nothing starts */
	struct image image;		/* root NULL: the host's own directories */
	char *const *argv;		/* the command: the spec's, or the image's own; NULL: none */
	struct strv wall_run;		/* with a wall: its words in front of the command's */
	struct strv wall_exec;		/* ... in front of those of one more command */
	struct strv wall_copy;		/* ... in front of those of a copy; empty: ward-init copies by itself */
	struct strv wall_same;		/* ... "key: value" of what its checkpoints depend on; empty: it makes none */
	char **started;			/* with a wall: all that ward-init starts, NULL-terminated; NULL: argv. The words are not its own */
	struct plan_tape *tape;		/* a recording; owned; NULL: none */
	struct certs *certs;		/* with inspect rules: filled by their gateway before the sandbox is built; NULL: none */
	struct strv env;		/* NAME=VALUE, complete */
	char *cwd;			/* inside */
	char *workspace;		/* absolute, cleaned, resolved */
	int *lock_fds;			/* of the volumes: they are in use for as long as the plan is */
	size_t lock_count;
	struct strv strings;		/* what the mounts' texts live in */
	struct plan_gpus *gpus;		/* NULL: none; owned */
	struct plan_devices *devices;	/* of those, or of the wall; NULL: none; owned */
	struct strv notes;		/* what the user should know: groups that stay, weaker choices */
	bool watch;			/* some limit is held by the watch */
	bool review;			/* changes of the workspace are kept aside */
	bool continued;			/* ... with those of an earlier run, whose id this one has */
};

/* Whom the agent is on the host unless a policy or file system has it otherwise. */
void plan_expected_ids(const struct facts *f, struct plan_ids *ret_ids);

/* Compiles the plan; *ret_plan is the caller's until plan_free(). system is borrowed for as long (NULL: read here).
 * Nothing on the host is changed but for the volumes of a spec that starts, which are made. */
must_check int plan_compile(const struct spec *s, const struct plan_system *system, struct plan **ret_plan,
			    struct ward_err *e);
/* The sandbox is built: what only that needed goes. */
void plan_built(const struct plan *p);
/* The run is over: its volumes and its image are in use no longer. */
void plan_release(struct plan *p);
/* The same, and what the kernel does not do when this process ends: nobody who worked for it is left behind, and no recording that stayed empty. */
void plan_end(struct plan *p);
void plan_free(struct plan *p);
/* The plan as text or JSON, with the stages of its engine ("name" and "help" pairs, NULL-terminated). */
void plan_print(const struct plan *p, const char *const *stages, bool json, struct buf *out);

/* What the policy's isolation came to: the wall's name, or the engine's. */
const char *plan_isolation(const struct plan *p);
/* The words that ward-init starts. */
char *const *plan_started(const struct plan *p);

const char *limit_name(enum limit l);
const char *limit_option(enum limit l);		/* that moves it */
const char *layer_name(enum layer l);
const char *held_by_name(enum held_by h);	/* none cgroup1 cgroup2 rlimit tmpfs watch */

#endif
