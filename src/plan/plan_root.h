/* Parts of plan_compile(): the mounts, the ids, the environment. Used by plan.c alone. */
#ifndef WARD_PLAN_PLAN_ROOT_H
#define WARD_PLAN_PLAN_ROOT_H

#include "model/plan.h"

/* Adds the private file systems and links of tables/root.def. */
must_check int plan_add_private(struct plan *p, struct ward_err *e);
/* plan_scratch.c: the private directories of filesystem.scratch. */
must_check int plan_add_scratch(struct plan *p, struct ward_err *e);
/* Adds the workspace, the git directories that it needs, and the policy's host mounts. */
must_check int plan_add_policy_mounts(struct plan *p, struct ward_err *e);
/* Adds the caches and the named home of the policy, made and locked if the spec starts. */
must_check int plan_add_volumes(struct plan *p, struct ward_err *e);
/* Makes what is mounted in a named home's directory exist there. */
must_check int plan_make_points(struct plan *p, struct ward_err *e);
/* Appends a bind; texts are copied. Returns it (valid until the next one) or NULL: out of
 * memory. */
must_check struct plan_mount *plan_add_bind(struct plan *p, const char *source, const char *target);
/* Adds one tree that the user asked for, read-only or writable, or says what is wrong with it. */
must_check int plan_add_policy_bind(struct plan *p, const char *source, const char *target,
				    bool writable, struct ward_err *e);
/* Appends a link or a file of ward's own, which the engine makes. Texts are copied. -ENOMEM. */
must_check int plan_add_link(struct plan *p, const char *to, const char *target);
must_check int plan_add_file(struct plan *p, const char *text, const char *target);
/* How large each private file system may grow: to the whole memory limit, which counts them all
 * together. */
uint64_t plan_private_bytes(const struct plan *p);
/* Appends a private file system of ward's own, which the caller sizes. NULL: out of memory. */
must_check struct plan_mount *plan_add_tmpfs(struct plan *p, const char *target, unsigned mode);
/* Appends a read-only /proc of the sandbox's processes on which nothing is masked: while one is in
 * view the kernel lets a program inside mount another. -ENOMEM. */
must_check int plan_add_proc(struct plan *p, const char *target);
/* Adds what the policy's programs are made of. */
must_check int plan_add_programs(struct plan *p, struct ward_err *e);
/* Fills the plan's commands: which programs may run (process.commands). */
must_check int plan_add_commands(struct plan *p, struct ward_err *e);
void plan_commands_free(struct plan_commands *c);
/* plan_children.c: process.children. */
must_check int plan_add_children(struct plan *p, struct ward_err *e);
/* plan_asks.c: filesystem.ask, and ward-ask. */
must_check int plan_add_proposals(struct plan *p, struct ward_err *e);
must_check int plan_add_asks(struct plan *p, struct ward_err *e);
/* Adds the toolchains that the policy names, or that the project or the command needs. */
must_check int plan_add_toolchains(struct plan *p, struct ward_err *e);
/* The same, where there may be some; plan_toolchains.c. */
must_check int plan_show_toolchains(struct plan *p, struct ward_err *e);
/* Hides credentials in a toolchain's mount. */
must_check int plan_hide_in_toolchain(struct plan *p, const struct plan_mount *m,
				      struct ward_err *e);
/* What an entry of the caller's PATH is inside because of a toolchain; NULL: nothing. The caller
 * frees. */
char *plan_toolchain_path(const struct plan *p, const char *dir);
/* Says which other program of the command's name runs inside, if the one of the caller's PATH is
 * not there. */
void plan_note_program(struct plan *p);
/* Whether the path is seen inside as the host has it: of /usr, or of a mount at its own place. */
bool plan_is_in_view(const struct plan *p, const char *path);
/* Opens the image that the policy names, and makes the system of it; nothing to do for host. */
must_check int plan_open_image(struct plan *p, struct ward_err *e);
/* As root: the image's tree with root's eyes, for whom the agent is. */
must_check int plan_place_image(struct plan *p, struct ward_err *e);
/* The command and where it starts, where the image has a say. */
must_check int plan_choose_command(struct plan *p, struct ward_err *e);
/* Last: from here on the mounts stay as they are. */
void plan_seal_image(struct plan *p);
/* Whether the image has a directory at this path. */
bool plan_image_has(const struct plan *p, const char *path);
/* Adds the graphics processors of the policy: their nodes, and for an image their driver. */
must_check int plan_add_gpus(struct plan *p, struct ward_err *e);
void plan_gpus_free(struct plan_gpus *g);
/* Adds a device node that FIELD of the policy needs; `groups` are those who often may open it. 1:
 * there is no such node. */
must_check int plan_add_device(struct plan *p, const char *field, const char *node,
			       const char *groups, struct ward_err *e);
/* As root: a node of that device which is mounted nowhere, for one id alone: a descriptor of its
 * file system, in which it is "node", or -errno. */
must_check int plan_make_node(dev_t device, uid_t uid, gid_t gid);
void plan_devices_free(struct plan_devices *d);
/* Says where a driver's libraries are that an image got. */
void plan_gpus_env(struct plan *p);
/* Adds git's configuration. */
must_check int plan_add_git(struct plan *p, struct ward_err *e);
#define PLAN_HOME "/home/agent"
/* the ssh-agent of the sandbox and its known_hosts; /etc/ssh leads there */
#define PLAN_SSH "/.ward/ssh"
#define PLAN_SSH_SOCKET PLAN_SSH "/agent"
#define PLAN_SSH_KNOWN PLAN_SSH "/ssh_known_hosts"
/* what git inside runs as gpg, and the public keys that it verifies with */
#define PLAN_GPG PLAN_SSH "/gpg"
#define PLAN_GPG_KEYS PLAN_SSH "/gpg_keys"
#define PLAN_GUARD_SOCKET "/.ward/guard/socket" /* that stand-ins connect to (guest/stand_in.c) */
/* process.children: what ward is inside, and whom it speaks to (guest/stand_in.c) */
#define PLAN_CHILDREN_CLIENT "/.ward/bin/ward"
#define PLAN_CHILDREN_SOCKET "/.ward/children/socket"
#define PLAN_CHANNEL_SOCKET "/.ward/channel/socket" /* of a child, for messages */
#define PLAN_PROGRAMS "/.ward/bin" /* links to the policy's programs, in front of PATH */
/* The user's home: PLAN_HOME, or that of process.user, which the caller's buffer holds then. */
#define PLAN_USER_MAX 32
const char *plan_home(const struct plan *p, char ret[PLAN_USER_MAX + 8]);
/* Whether /home/agent is a volume that outlives the run. */
bool plan_keeps_home(const struct plan *p);
/* What *fd holds is in use for as long as the plan is; takes *fd. -ENOMEM: not. */
must_check int plan_keep_lock(struct plan *p, int *fd);
/* The kept /etc is left for one that is made entry by entry where something of the plan is to be
 * mounted in it. */
must_check int plan_choose_etc(struct plan *p, struct ward_err *e);
/* Puts the mounts in order, the system's first, and says which lie in others. */
must_check int plan_order_mounts(struct plan *p, struct ward_err *e);
/* Decides whom the agent is on the host; as root also makes the id-mapped copies of the policy's
 * trees. */
must_check int plan_choose_ids(struct plan *p, struct ward_err *e);
/* Refuses a workspace that cannot be the lower layer of an overlay. */
must_check int plan_check_review(const struct plan *p, struct ward_err *e);
/* The first mount point beneath dir in a table of mounts (as /proc/self/mountinfo), NULL: none. The
 * caller frees. A pure function. */
char *plan_mount_beneath(const char *table, size_t n, const char *dir);
/* The environment inside. */
must_check int plan_make_env(struct plan *p, struct ward_err *e);
/* Sets NAME (n characters) to a value, replacing what stands there. */
void plan_set_env(struct plan *p, const char *name, size_t n, const char *value);
/* Has the policy's secrets fetched and puts placeholders into the environment; for a plan that is
 * only looked at, words that say so. */
must_check int plan_add_creds(struct plan *p, struct ward_err *e);
/* Adds the mounts of canary files, which plan_canary.h fills. */
must_check int plan_add_canaries(struct plan *p, struct ward_err *e);

#endif
