/*
 * The mounts of a plan. In: tables/root.def, the policy, a look at the host. Out: plan_mount rows
 * in the order in which the engine makes them. Runs in the supervisor with the user's rights;
 * changes nothing. What everybody may not read does not get into the sandbox's /etc, the process
 * that runs ward.
 */
#include "plan/plan_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "guard/guard.h"
#include "plan/etc_cache.h"
#include "plan/inner.h"
#include "plan/plan.h"
#include "plan/plan_reach.h"

enum root_kind { ROOT_TREE, ROOT_FILE, ROOT_LINK, ROOT_TMPFS };

struct root_row {
	enum root_kind kind;
	const char *path, *text;
	unsigned mode;
	bool exec;
};

static const struct root_row root_rows[] = {
#define TREE(path) { ROOT_TREE, path, NULL, 0, true },
#define FILE(path, content) { ROOT_FILE, path, content, 0644, false },
#define LINK(path, target) { ROOT_LINK, path, target, 0, false },
#define TMPFS(path, mode, exec) { ROOT_TMPFS, path, NULL, mode, exec },
#include "root.def"
};

static const char *const etc_rows[] = {
#define ETC(name) name,
#include "root.def"
};

/* Where mounts are added: a plan's list or the system's. */
struct mount_list {
	struct plan_mount **mounts;
	size_t *count, *cap;
	struct strv *strings;
};

/* Appends a mount of texts that outlive the list. Returns it (valid until the next one) or NULL:
 * out of memory. */
static struct plan_mount *add_lasting(const struct mount_list *list, enum mount_kind kind,
				      const char *source, const char *target)
{
	size_t n = *list->count;
	struct plan_mount *m = *list->mounts;

	if (n == *list->cap) {
		m = reallocarray(*list->mounts, n ? 2 * n : 32, sizeof(*m));
		if (!m)
			return NULL;
		*list->mounts = m;
		*list->cap = n ? 2 * n : 32;
	}
	m += n;
	*m = (struct plan_mount){ .kind = kind, .tree_fd = -1, .source = source, .target = target };
	++*list->count;
	return m;
}

static const char *copy_text(const struct mount_list *list, const char *text)
{
	strv_add(list->strings, text);
	return list->strings->failed ? NULL : list->strings->items[list->strings->len - 1];
}

/* The same of texts that are copied. */
static struct plan_mount *add_mount(const struct mount_list *list, enum mount_kind kind,
				    const char *source, const char *target)
{
	const char *to = copy_text(list, target);
	const char *from = source == target ? to : source ? copy_text(list, source) : NULL;

	return to && (from || !source) ? add_lasting(list, kind, from, to) : NULL;
}

static struct mount_list plan_list(struct plan *p)
{
	return (struct mount_list){ &p->mounts, &p->mount_count, &p->mount_cap, &p->strings };
}

struct plan_mount *plan_add_bind(struct plan *p, const char *source, const char *target)
{
	struct mount_list list = plan_list(p);

	return add_mount(&list, MOUNT_BIND, source, target);
}

int plan_add_link(struct plan *p, const char *to, const char *target)
{
	struct mount_list list = plan_list(p);

	return add_mount(&list, MOUNT_LINK, to, target) ? 0 : -ENOMEM;
}

int plan_add_file(struct plan *p, const char *text, const char *target)
{
	struct mount_list list = plan_list(p);
	struct plan_mount *m = add_mount(&list, MOUNT_FILE, text, target);

	if (m)
		m->mode = 0644;
	return m ? 0 : -ENOMEM;
}

struct plan_mount *plan_add_tmpfs(struct plan *p, const char *target, unsigned mode)
{
	struct mount_list list = plan_list(p);
	struct plan_mount *m = add_mount(&list, MOUNT_TMPFS, "", target);

	if (m) {
		m->mode = mode;
		m->noexec = m->writable = true;
	}
	return m;
}

int plan_add_proc(struct plan *p, const char *target)
{
	struct mount_list list = plan_list(p);

	return add_mount(&list, MOUNT_PROC, "", target) ? 0 : -ENOMEM;
}

static int add_link(const struct mount_list *list, int dir_fd, const char *name, const char *path)
{
	char target[4096];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return add_mount(list, MOUNT_LINK, target, path) ? 0 : -ENOMEM;
}

/* Adds name of dir_fd, seen as path on both sides: a link as a link, the rest bound if everybody
 * may read it. */
static int add_host_entry(const struct mount_list *list, int dir_fd, const char *name,
			  const char *path)
{
	struct plan_mount *m;
	struct stat st;
	mode_t need;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return add_link(list, dir_fd, name, path);
	need = S_ISDIR(st.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
	if ((!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) || (st.st_mode & need) != need)
		return 0;
	m = add_mount(list, MOUNT_BIND, path, path);
	if (!m)
		return -ENOMEM;
	m->is_file = S_ISREG(st.st_mode);
	return 0;
}

static bool etc_wants(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(etc_rows); i++) {
		size_t n;

		if (etc_rows[i][0] != name[0])
			continue;
		n = strlen(etc_rows[i]);
		if (etc_rows[i][n - 1] == '*' ? strncmp(etc_rows[i], name, n - 1) == 0
					      : strcmp(etc_rows[i], name) == 0)
			return true;
	}
	return false;
}

#define ETC_PATH_BYTES 512 /* a directory's entry has at most 255, a row of the table fewer */

/* A formatted one would cost more than all else that is done for an entry. */
static const char *in_etc(char path[ETC_PATH_BYTES], const char *name)
{
	stpcpy(stpcpy(path, "/etc/"), name);
	return path;
}

static int add_etc_name(const struct mount_list *list, int etc_fd, const char *name)
{
	char path[ETC_PATH_BYTES];

	if (name[0] == '.' || strlen(name) >= ETC_PATH_BYTES - sizeof("/etc/") || !etc_wants(name))
		return 0;
	return add_host_entry(list, etc_fd, name, in_etc(path, name));
}

/* Adds what the table names of these entries of /etc. */
static int add_entries(const struct mount_list *list, int etc_fd, const char *entries, size_t n)
{
	int r = 0;

	for (size_t at = 0; at < n && r == 0;) {
		const struct dirent64 *entry = (const void *)(entries + at);

		at += entry->d_reclen;
		r = add_etc_name(list, etc_fd, entry->d_name);
	}
	return r;
}

static int list_etc(const struct mount_list *list, int etc_fd)
{
	char entries[8192] __attribute__((aligned(8))); /* enough for most in one call */
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getdents64(etc_fd, entries, sizeof(entries))) != 0)
		r = n < 0 ? -errno : add_entries(list, etc_fd, entries, (size_t)n);
	return r;
}

/* What the host has of it, entry by entry; *stamp is how /etc was before. */
static int add_etc(const struct mount_list *list, struct stat *stamp)
{
	auto_fd etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[ETC_PATH_BYTES];
	int r;

	if (etc < 0 || fstat(etc, stamp) < 0)
		return errno == ENOENT ? 0 : -errno;
	r = list_etc(list, etc);
	for (size_t i = 0; i < ARRAY_LEN(etc_rows) && r == 0; i++) {
		if (!strchr(etc_rows[i], '/'))
			continue;
		r = add_host_entry(list, etc, etc_rows[i], in_etc(path, etc_rows[i]));
	}
	return r;
}

void plan_etc_parents(struct strv *dirs)
{
	for (size_t i = 0; i < ARRAY_LEN(etc_rows); i++)
		for (const char *slash = strchr(etc_rows[i], '/'); slash;
		     slash = strchr(slash + 1, '/')) {
			auto_free char *dir = strndup(etc_rows[i], (size_t)(slash - etc_rows[i]));

			dirs->failed |= !dir;
			if (dir && !strv_has(dirs, dir))
				strv_add(dirs, dir);
		}
}

/* The same as add_etc(), of the directory that holds all of it. */
static int add_kept(const struct mount_list *list, const struct etc_cache *kept)
{
	for (size_t i = 0; i < kept->entry_count; i++) {
		const struct etc_entry *entry = &kept->entries[i];
		const char *target = kept->list + entry->target;
		struct plan_mount *m = entry->link ? add_lasting(list, MOUNT_LINK,
								 kept->list + entry->link, target)
						   : add_lasting(list, MOUNT_BIND, target, target);

		if (!m)
			return -ENOMEM;
		m->is_file = entry->is_file;
		m->kept = !entry->mounted;
	}
	return 0;
}

uint64_t plan_private_bytes(const struct plan *p)
{
	const struct plan_limit *memory = &p->limits[LIMIT_MEMORY];

	return memory->value != POLICY_NONE ? memory->value : p->facts.memory_bytes / 2;
}

static void size_tmpfs(const struct plan *p, struct plan_mount *m)
{
	const struct plan_limit *inodes = &p->limits[LIMIT_INODES];

	m->bytes = plan_private_bytes(p);
	m->inodes = inodes->value != POLICY_NONE ? inodes->value : 0;
}

/* What the table names, of the host's directories unless bare, with the kept /etc if there is
 * one. */
static int add_system(struct plan_system *system, bool bare)
{
	struct mount_list list = { &system->mounts, &system->mount_count, &system->mount_cap,
				   &system->strings };
	struct plan_mount *m;
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(root_rows) && r == 0; i++) {
		const struct root_row *row = &root_rows[i];

		if (row->kind == ROOT_TREE && !bare) {
			r = add_host_entry(&list, AT_FDCWD, row->path, row->path);
		} else if (row->kind == ROOT_FILE) {
			m = add_lasting(&list, MOUNT_FILE, row->text, row->path);
			r = m ? 0 : -ENOMEM;
			if (m) {
				m->mode = row->mode;
				m->kept = plan_keeps_etc(system, row->path);
			}
		}
	}
	if (r == 0 && !bare)
		r = system->etc.path ? add_kept(&list, &system->etc)
				     : add_etc(&list, &system->etc_stamp);
	if (r == 0 && (!add_lasting(&list, MOUNT_PROC, NULL, "/proc") ||
		       !add_lasting(&list, MOUNT_DEV, NULL, "/dev")))
		r = -ENOMEM;
	for (size_t i = 0; i < system->mount_count; i++)
		system->mounts[i].system = true;
	return r;
}

static int read_system(bool bare, bool kept, const struct facts *facts,
		       struct plan_system **ret_system, struct ward_err *e)
{
	struct plan_system *system = calloc(1, sizeof(*system));
	int r;

	if (!system)
		return ward_fail(e, ENOMEM, "out of memory");
	system->facts = *facts;
	system->etc = (struct etc_cache)ETC_CACHE_NONE;
	system->etc_wanted =
		kept && !etc_cache_find(facts->uid == 0, &system->etc) && !system->etc.refused;
	system->etc_read = system->etc_wanted ? time(NULL) : 0;
	r = add_system(system, bare);
	if (r < 0) {
		plan_system_free(system);
		return ward_fail(e, -r, "cannot read the host's system directories: %s",
				 strerror(-r));
	}
	*ret_system = system;
	return 0;
}

int plan_system_read(const struct facts *facts, struct plan_system **ret_system, struct ward_err *e)
{
	return read_system(false, true, facts, ret_system, e);
}

int plan_system_bare(const struct facts *facts, struct plan_system **ret_system, struct ward_err *e)
{
	return read_system(true, false, facts, ret_system, e);
}

void plan_system_keep(const struct plan_system *system)
{
	if (system->etc_wanted)
		etc_cache_make(system->mounts, system->mount_count, &system->etc_stamp,
			       system->etc_read);
}

bool plan_keeps_etc(const struct plan_system *system, const char *path)
{
	return system->etc.path && path_is_beneath(path, "/etc");
}

static bool has_own_user(const struct plan *p)
{
	return strcmp(p->spec->policy.proc_user, "agent") != 0;
}

const char *plan_home(const struct plan *p, char ret[PLAN_USER_MAX + 8])
{
	if (!has_own_user(p))
		return PLAN_HOME;
	snprintf(ret, PLAN_USER_MAX + 8, "/home/%.*s", PLAN_USER_MAX, p->spec->policy.proc_user);
	return ret;
}

static int check_user(const struct plan *p, struct ward_err *e)
{
	const char *name = p->spec->policy.proc_user;
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	if (name[n] || n > PLAN_USER_MAX || !((*name >= 'a' && *name <= 'z') || *name == '_') ||
	    strcmp(name, "root") == 0 || strcmp(name, "nobody") == 0)
		return ward_fail(
			e, EINVAL,
			"process.user: not a user's name: %s (small letters, digits, _ and "
			"-, at most 32; not root or nobody)",
			name);
	if (strcmp(p->spec->policy.image, "host") != 0 || p->spec->inner || plan_keeps_home(p)) {
		ward_fail(e, ENOTSUP,
			  "process.user: %s: only with image: host, filesystem.home: "
			  "private and isolation: native or oci",
			  name);
		return ward_remedy(e, "remove process.user from the policy");
	}
	return 0;
}

/* A text of ward's own in which the user has its name. */
static int rename_user(struct plan_system *system, struct plan_mount *m, const char *name)
{
	auto_buf text = { 0 };
	const char *at = m->source, *next;

	while ((next = strstr(at, "agent"))) {
		buf_add(&text, at, (size_t)(next - at));
		buf_puts(&text, name);
		at = next + strlen("agent");
	}
	buf_puts(&text, at);
	strv_add(&system->strings, buf_text(&text));
	if (text.failed || system->strings.failed)
		return -ENOMEM;
	m->source = system->strings.items[system->strings.len - 1];
	return 0;
}

/* The system's own view with another user in /etc/passwd and /etc/group. */
static int read_with_user(struct plan *p, struct ward_err *e)
{
	int r = check_user(p, e);

	if (r < 0)
		return r;
	plan_system_free(p->own_system);
	p->own_system = NULL;
	r = read_system(false, false, &p->facts, &p->own_system, e);
	p->system = p->own_system;
	for (size_t i = 0; r == 0 && i < p->own_system->mount_count; i++) {
		struct plan_mount *m = &p->own_system->mounts[i];

		if (m->kind == MOUNT_FILE &&
		    (strcmp(m->target, "/etc/passwd") == 0 || strcmp(m->target, "/etc/group") == 0))
			r = rename_user(p->own_system, m, p->spec->policy.proc_user);
	}
	return r == -ENOMEM ? ward_fail(e, ENOMEM, "out of memory") : r;
}

int plan_choose_etc(struct plan *p, struct ward_err *e)
{
	/* they have another /.ward */
	bool other = p->spec->inner && (p->spec->inner->own_root || p->spec->inner->own_view);
	int r;

	if (has_own_user(p))
		return read_with_user(p, e);
	/* /etc/ssh leads to its known_hosts */
	other |= p->spec->policy.cred_ssh.len && p->spec->policy.cred_mode != CRED_MODE_NONE;
	for (size_t i = 0; i < p->mount_count; i++)
		/* a place for it has to be made there */
		other |= path_is_beneath(p->mounts[i].target, "/etc");
	if (!other || !p->system->etc.path)
		return 0;
	plan_system_free(p->own_system);
	p->own_system = NULL;
	r = read_system(false, false, &p->facts, &p->own_system, e);
	p->system = p->own_system;
	return r;
}

void plan_system_free(struct plan_system *system)
{
	if (!system)
		return;
	if (system->image)
		own_close_fd(&system->image->tree_fd);
	free(system->image);
	free(system->mounts);
	strv_free(&system->strings);
	etc_cache_release(&system->etc);
	free(system);
}

int plan_add_private(struct plan *p, struct ward_err *e)
{
	struct mount_list list = plan_list(p);
	char home[PLAN_USER_MAX + 8];

	for (size_t i = 0; i < ARRAY_LEN(root_rows); i++) {
		const struct root_row *row = &root_rows[i];
		struct plan_mount *m;

		if (row->kind != ROOT_LINK && row->kind != ROOT_TMPFS)
			continue;
		if (plan_keeps_home(p) && strcmp(row->path, PLAN_HOME) == 0)
			continue;
		if (has_own_user(p) && strcmp(row->path, PLAN_HOME) == 0)
			m = add_mount(&list, MOUNT_TMPFS, NULL, plan_home(p, home));
		else
			m = add_lasting(&list, row->kind == ROOT_LINK ? MOUNT_LINK : MOUNT_TMPFS,
					row->text, row->path);
		if (!m)
			return ward_fail(e, ENOMEM, "out of memory");
		m->kept = m->kind == MOUNT_LINK && plan_keeps_etc(p->system, row->path);
		if (m->kind != MOUNT_TMPFS)
			continue;
		m->mode = row->mode;
		m->noexec = !row->exec;
		m->writable = true;
		size_tmpfs(p, m);
	}
	return 0;
}

int plan_add_policy_bind(struct plan *p, const char *source, const char *target, bool writable,
			 struct ward_err *e)
{
	/* the workspace was resolved already */
	auto_free char *real = source == p->workspace ? strdup(source) : realpath(source, NULL);
	struct mount_list list = plan_list(p);
	struct plan_mount *m;
	struct stat st;

	if (!real || lstat(real, &st) < 0) {
		ward_fail_errno(e, "cannot mount %s in the sandbox", source);
		return ward_remedy(e, "create it, or remove it from host_mounts, --ro or --rw");
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL,
				 "cannot mount %s in the sandbox: it is neither a directory nor a "
				 "regular file (devices and sockets are not supported)",
				 source);
	if (path_is_beneath(real, "/sys") || path_is_beneath(real, "/proc"))
		return ward_fail(e, EINVAL,
				 "cannot mount %s in the sandbox: kernel file systems stay outside",
				 source);
	if (strcmp(real, "/") == 0 || strcmp(target, "/") == 0)
		return ward_fail(
			e, EINVAL,
			"cannot mount / in the sandbox: name the directories that it needs");
	if (path_is_beneath(target, "/proc") || path_is_beneath(target, "/dev") ||
	    path_is_beneath(target, "/.ward"))
		return ward_fail(
			e, EINVAL,
			"cannot mount at %s: /proc, /dev and /.ward belong to the sandbox itself",
			target);
	m = add_mount(&list, MOUNT_BIND, real, target);
	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->writable = writable;
	m->is_file = S_ISREG(st.st_mode);
	m->from_policy = true;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	return 0;
}

/* The directory was judged by its path. What is mounted is what has that number: it must be there
 * under that very path, through no link, and the workspace's owner must own it, or the operator has
 * put another one in its place. */
static int check_git_dir(const struct plan *p, const struct plan_mount *m, const char *dir,
			 struct ward_err *e)
{
	struct stat root, st;

	if (stat(p->workspace, &root) == 0 && strcmp(m->source, dir) == 0 && lstat(dir, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_dev == m->dev && st.st_ino == m->ino &&
	    st.st_uid == root.st_uid)
		return 0;
	ward_fail(
		e, ESTALE,
		"the workspace's git directory %s was replaced while the sandbox was being set up",
		dir);
	return ward_remedy(e, "run it again when no other program works on the repository");
}

static int add_git_dirs(struct plan *p, bool writable, struct ward_err *e)
{
	auto_strv dirs = { 0 };
	int r = guard_git_dirs(p->workspace, &dirs, &p->notes, e);

	/* under review, too: a private copy is mounted over it, or it is read-only */
	for (size_t i = 0; i < dirs.len && r >= 0; i++) {
		r = plan_add_policy_bind(p, dirs.items[i], dirs.items[i], writable || p->review, e);
		if (r >= 0)
			r = check_git_dir(p, &p->mounts[p->mount_count - 1], dirs.items[i], e);
	}
	return r;
}

/* What a link in a place of the sandbox's leads to is the sandbox's choice: all writable places are
 * known now. */
static int check_ways(const struct plan *p, const struct policy_mounts *mounts, size_t first,
		      struct ward_err *e)
{
	for (size_t i = 0; i < mounts->len; i++) {
		auto_free char *source = path_join(p->workspace, mounts->items[i].path);
		int r = source ? plan_reach_way(p, "host_mounts", source,
						p->mounts[first + i].source, e)
			       : ward_fail(e, ENOMEM, "out of memory");

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_host_mounts(struct plan *p, struct ward_err *e)
{
	const struct policy_mounts *mounts = &p->spec->policy.fs_host_mounts;
	size_t first = p->mount_count;

	for (size_t i = 0; i < mounts->len; i++) {
		const struct policy_mount *pm = &mounts->items[i];
		auto_free char *source = path_join(p->workspace, pm->path);
		auto_free char *target = path_join(p->workspace, pm->at ? pm->at : pm->path);
		int r;

		if (!source || !target)
			return ward_fail(e, ENOMEM, "out of memory");
		r = plan_add_policy_bind(p, source, target, pm->writable, e);
		if (r < 0)
			return r;
	}
	return check_ways(p, mounts, first, e);
}

int plan_add_policy_mounts(struct plan *p, struct ward_err *e)
{
	bool writable = p->spec->policy.fs_mode == FS_MODE_READ_WRITE;
	int r;

	p->review = p->spec->policy.fs_mode == FS_MODE_REVIEW;
	r = plan_add_policy_bind(p, p->workspace, p->workspace, writable || p->review, e);
	if (r == 0 && p->review) {
		p->mounts[p->mount_count - 1].review = true;
		r = plan_check_review(p, e);
	}

	if (r == 0)
		r = add_git_dirs(p, writable, e);
	return r < 0 ? r : add_host_mounts(p, e);
}

static unsigned path_depth(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static int by_depth(const void *a, const void *b)
{
	const struct plan_mount *x = a, *y = b;

	if (path_depth(x->target) != path_depth(y->target))
		return (int)path_depth(x->target) - (int)path_depth(y->target);
	return x->from_policy - y->from_policy; /* the user's tree goes over ward's own */
}

/* Whether the target of m lies in another bind. ward's own mounts do not, so only the user's are
 * looked at. */
static bool lies_in_bind(const struct plan *p, const struct plan_mount *m)
{
	for (size_t i = 0; i < p->mount_count && m->from_policy; i++) {
		const struct plan_mount *outer = &p->mounts[i];

		if (outer != m && outer->kind == MOUNT_BIND &&
		    strcmp(outer->target, m->target) != 0 &&
		    path_is_beneath(m->target, outer->target))
			return true;
	}
	return false;
}

/* A link such as /var/tmp gives way when something is mounted beneath its own path. */
static void drop_covered_links(struct plan *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->mount_count; i++) {
		bool covered = false;

		for (size_t k = 0; k < p->mount_count && p->mounts[i].kind == MOUNT_LINK; k++)
			covered |= p->mounts[k].from_policy &&
				   path_is_beneath(p->mounts[k].target, p->mounts[i].target);
		if (!covered || p->mounts[i].system)
			p->mounts[kept++] = p->mounts[i];
	}
	p->mount_count = kept;
}

/* Puts the system's mounts in front of the others, which are sorted so that outer ones come
 * first. */
static int join_system(struct plan *p, const struct plan_system *system)
{
	struct plan_mount *all = calloc(p->mount_count + system->mount_count, sizeof(*all));

	if (!all)
		return -ENOMEM;
	qsort(p->mounts, p->mount_count, sizeof(*p->mounts), by_depth);
	memcpy(all, system->mounts, system->mount_count * sizeof(*all));
	memcpy(all + system->mount_count, p->mounts, p->mount_count * sizeof(*all));
	free(p->mounts);
	p->mounts = all;
	p->mount_count += system->mount_count;
	p->mount_cap = p->mount_count;
	return 0;
}

int plan_order_mounts(struct plan *p, struct ward_err *e)
{
	if (join_system(p, p->system) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	drop_covered_links(p);
	for (size_t i = 0; i < p->mount_count; i++)
		p->mounts[i].in_bind = lies_in_bind(p, &p->mounts[i]);
	for (size_t i = 0; i < p->mount_count; i++)
		for (size_t k = 0; k < i && p->mounts[i].from_policy; k++)
			if (p->mounts[k].from_policy &&
			    strcmp(p->mounts[i].target, p->mounts[k].target) == 0)
				return ward_fail(e, EINVAL, "two mounts at %s: give each path once",
						 p->mounts[i].target);
	return 0;
}
