/* What the kinds of cgroup share : one run's directories. */
#ifndef WARD_LIMIT_CGROUP_KIND_H
#define WARD_LIMIT_CGROUP_KIND_H

#include "host/cgroup_map.h"
#include "limit/limits.h"

struct cgroup_dir {
	char *path;  /* NULL: not used; owned */
	int fd;      /* of the directory, -1 until it is made */
	int join_fd; /* v1: tasks, -1: none */
	bool joined; /* v1: shares the directory of an earlier place */
};

struct cgroup_ops;

struct cgroup {
	const struct cgroup_ops *ops;
	struct cgroup_dir dirs[CG_PLACES];
	struct cgroup_dir inner; /* v2, nesting: the processes are here, the limits above */
	struct cgroup_dir own;   /* v2: where ward itself moved to, to make room */
	int event_fd;
	bool frozen;
	unsigned enabled; /* v2, made before the plan: its controllers, as cgroup2.c numbers them */
	uint64_t pids_limit; /* POLICY_NONE: none */
	struct pids_storm storm;
};

/* One kind: a row of the table in cgroup.c. */
struct cgroup_ops {
	enum cgroup_kind kind;
	/* Whether it can hold limits; *info gets the rest, or the reason why not; NULL: not
	 * wanted. */
	bool (*probe)(const struct cgroup_map *m, struct cgroup_info *info);
	int (*create)(struct cgroup *c, const struct cgroup_map *m, const struct plan *p,
		      struct ward_err *e);
	int (*attach)(struct cgroup *c, pid_t pid, struct ward_err *e);
	int (*freeze)(struct cgroup *c, bool frozen);
	/* after freeze(c, true): whether all stand still; or -errno */
	int (*is_still)(struct cgroup *c);
	int (*kill)(struct cgroup *c);
	void (*usage)(struct cgroup *c, struct usage *u);
	int (*event_open)(struct cgroup *c); /* the descriptor, for the caller, or -errno */
	/* Undoes what creating did beside the directories; NULL: nothing. */
	void (*leave)(struct cgroup *c);
};

extern const struct cgroup_ops cgroup1_ops, cgroup2_ops;

/* v2: the name of a directory that is made before there is a plan begins so. Its maker keeps it
 * locked (flock) for as long as it lives. */
#define CGROUP_EARLY "ward-early-"
/* Makes and locks such a directory where the wanted controllers are enabled already (production:
 * CGROUP2_LIMITS) and nothing but the directory itself has to be made. -errno: not here. */
#define CGROUP2_LIMITS 3u /* memory and pids */
must_check int cgroup2_begin(struct cgroup *c, const struct cgroup_map *m, unsigned wanted);
bool cgroup2_suits(const struct cgroup *c, const struct plan *p);
must_check int cgroup2_limit(const struct cgroup *c, const struct plan *p, struct ward_err *e);

/* Makes d->path and opens it. */
must_check int cgroup_dir_make(struct cgroup_dir *d, struct ward_err *e);
/* Removes the directory, killing what is left inside, and frees d's parts. */
void cgroup_dir_drop(struct cgroup_dir *d);
/* The one number in a file of dir_fd, 0 when it cannot be read. */
uint64_t cgroup_read_number(int dir_fd, const char *file);
/* The number behind "key " at the start of a line in a file of dir_fd, 0 when there is none. */
uint64_t cgroup_read_key(int dir_fd, const char *file, const char *key);
/* The same in the file's text. Pure. */
uint64_t cgroup_text_key(const char *text, const char *key);
/* Reads the pids in dir_fd's cgroup.procs; returns how many (at most cap are written) or -errno. */
must_check ssize_t cgroup_read_pids(int dir_fd, pid_t *pids, size_t cap);
/* Sends SIGKILL to every process in the directory, never to the caller, until none is left or a
 * second has passed. */
must_check int cgroup_kill_pids(int dir_fd);
/* v2: moves ward's own processes from the leaf back to the directory above, so that the leaf
 * can go. */
must_check int cgroup_leave_leaf(int leaf_fd);
/* Whether the caller may create in the directory and move processes into what it creates. */
bool cgroup_may_create(const char *dir);

#endif
