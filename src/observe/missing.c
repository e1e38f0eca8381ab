/*
 * What the sandbox lacks. In: observations (observe.h) of calls that name a file. Out: an event for
 * each path that does not exist inside while the host has something of that name, or, beneath the
 * private home, the user's own home has. Runs in the supervisor while the caller waits.
 *
 * The sandbox chooses the names, and every one of them that it does not have is looked up on the
 * host, as walk_names.c does it: no automount is started and nothing of the kernel's own (/proc,
 * /sys, /dev) is looked at. Links are followed by the sandbox's own view alone: what is looked up
 * and reported is a name that the sandbox could have spelled itself, never where a link of the host
 * leads. The answer goes into the journal after the call went on, and the inside is looked at
 * first, so that the time it takes says little; a sandbox that measures it, or that can read the
 * hints, may still learn that a name exists. Each path counts once; beyond PATHS_MAX they are only
 * counted.
 */
#include "observe/missing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "event/event.h"
#include "observe/learn_path.h"
#include "observe/walk_names.h"
#include "policy/quote.h"

#define PATHS_MAX 40000
#define SLOTS (1u << 17) /* of hashes; never more than a third is used */

struct missing {
	uint64_t *seen; /* hashes of paths that were looked at; 0: free */
	size_t count;
	uint64_t dropped;
	char *home; /* the user's, NULL: unknown; owned */
	bool found;
	char path[PATH_MAX], host[PATH_MAX];
	pid_t pid;
};

struct missing *missing_create(void)
{
	struct missing *m = calloc(1, sizeof(*m));
	const char *home = getenv("HOME");

	if (!m)
		return NULL;
	m->seen = calloc(SLOTS, sizeof(*m->seen));
	m->home = home ? path_clean(home) : NULL;
	if (!m->seen) {
		missing_destroy(m);
		return NULL;
	}
	return m;
}

void missing_destroy(struct missing *m)
{
	if (!m)
		return;
	free(m->seen);
	free(m->home);
	free(m);
}

bool missing_is_noise(const char *path)
{
	static const char *const noise[] = {
		"/etc/locale.alias", "/etc/locale.conf", "/etc/host.conf",     "/etc/gai.conf",
		"/etc/nscd.conf",    "/etc/default/nss", "/etc/ld.so.preload", "/run/nscd",
		"/var/run/nscd",     "/var/db/nscd",     "/var/cache/nscd",    "/usr/lib/locale",
		"/usr/share/locale"
	};

	for (size_t i = 0; i < ARRAY_LEN(noise); i++)
		if (path_is_beneath(path, noise[i]))
			return true;
	return false;
}

/* FNV-1a. Two paths with one hash: one of them is not looked at, which harms the record alone. */
static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h ? h : 1;
}

static bool is_new(struct missing *m, const char *path)
{
	uint64_t h = hash(path);
	size_t at = h % SLOTS;

	while (m->seen[at] && m->seen[at] != h)
		at = (at + 1) % SLOTS;
	if (m->seen[at] == h)
		return false;
	if (m->count == PATHS_MAX) {
		m->dropped++;
		return false;
	}
	m->seen[at] = h;
	m->count++;
	return true;
}

/* Whether the path exists for that process: links are followed as it would, within its root. */
static bool exists_inside(int root_fd, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	auto_fd fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd >= 0 || errno != ENOENT;
}

/* m->path: the name that is missing inside, which is another one than was asked for where links
 * that exist inside lead to it. */
static bool is_absent_inside(struct missing *m, pid_t pid, const char *path)
{
	char root[32];
	auto_fd root_fd = -1;

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0 || exists_inside(root_fd, path) ||
	    walk_names(root_fd, path, true, m->path) != WALK_ABSENT)
		return false;
	return strcmp(m->path, path) == 0 || is_new(m, m->path);
}

static bool exists_outside(const struct missing *m)
{
	auto_fd root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char ignored[PATH_MAX];

	return root_fd >= 0 && walk_names(root_fd, m->host, false, ignored) == WALK_THERE;
}

static bool is_kernels(const char *path)
{
	static const char *const kernel[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < ARRAY_LEN(kernel); i++)
		if (path_is_beneath(path, kernel[i]))
			return true;
	return false;
}

void missing_look(struct missing *m, const struct observation *o)
{
	m->found = false;
	if (o->act != ACT_LOOK && o->act != ACT_OPEN && o->act != ACT_EXEC)
		return;
	if (!o->path[1] || o->creates) /* "/", and what is to be made */
		return;
	if (is_kernels(o->path) || !is_new(m, o->path))
		return;
	if (!is_absent_inside(m, o->pid, o->path) || is_kernels(m->path))
		return;
	observe_host_path(m->path, m->home, m->host);
	m->found = exists_outside(m);
	m->pid = o->pid;
}

/* The line of the policy; a name that no document can hold has none, and neither has what may hold
 * secrets (learn_path.h). */
static void put_remedy(const struct missing *m, struct buf *out)
{
	bool fine;

	if (!learn_may_advise(m->host, m->home, false))
		return;
	buf_puts(out, "filesystem.host_mounts: [{path: ");
	fine = policy_quote(out, m->host);
	if (strcmp(m->path, m->host) != 0) {
		buf_puts(out, ", at: ");
		fine &= policy_quote(out, m->path);
	}
	buf_puts(out, "}]");
	if (!fine)
		out->len = 0;
}

void missing_report(struct missing *m, struct result *r)
{
	struct ward_event v;
	char link[32], exe[512];
	auto_buf remedy = { 0 };
	ssize_t n;

	if (!m->found)
		return;
	m->found = false;
	v = event_make(EVENT_FILE_MISSING, ACTION_DENY, m->path);
	snprintf(link, sizeof(link), "/proc/%d/exe", m->pid);
	n = readlink(link, exe, sizeof(exe));
	put_remedy(m, &remedy);
	event_text(&v, FIELD_RULE, "filesystem.host_mounts");
	event_text(&v, FIELD_WHY, "it exists on the host, but not in the sandbox");
	event_text(&v, FIELD_REMEDY, remedy.len ? buf_text(&remedy) : NULL);
	event_bytes(&v, FIELD_EXE, n > 0 ? exe : NULL, n > 0 ? (size_t)n : 0);
	event_text(&v, FIELD_PATH, m->host);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(r->events, &v);
}

void missing_finish(struct missing *m, struct result *r)
{
	struct ward_event v =
		event_make(EVENT_FILE_MISSING, ACTION_LOG, "more paths, too many to examine");

	if (!m || !m->dropped)
		return;
	event_number(&v, FIELD_COUNT, m->dropped);
	event_emit(r->events, &v);
	m->dropped = 0;
}
