/*
 * Canaries of a run. In: opens of canary files, told by the kernel (inotify), and every event on
 * its way to the journal, of which some are what the gateway has found in requests. Out:
 * canary.touch, once for each canary, and what canary.do says: the sandbox stands still, or ends.
 * Runs in the supervisor; a run without canaries has none of this.
 *
 * A file is watched by its inode, so it does not matter by which name, mount, descriptor or system
 * call it is opened; to look whether it exists is not to open it. A host is an event of the gateway
 * or of the resolver of a sandbox without a network. A value (of a file, a variable, a remote) is
 * looked for in all texts of events: names that are looked up, URLs, words of commands; and by the
 * gateway in the requests and streams that it can read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "alarm/canary.h"
#include "event/event.h"
#include "plan/plan_canary.h"
#include "run/box_internal.h"

/* what is touched: files that are opened, hosts of the policy, hosts of remotes, values */
#define HOSTS WATCH_CANARIES_MAX
#define REMOTES (2 * WATCH_CANARIES_MAX)
#define VALUES (3 * WATCH_CANARIES_MAX)
#define ALL (VALUES + CANARY_RUN_VALUES)

struct box_canary {
	struct event_sink sink; /* first member: the sink that receives events */
	struct event_sink *next;
	const struct canaries *files; /* borrowed; NULL: neither files nor values */
	struct canary_finder *finder; /* owned; NULL: there are no values */
	const struct strv *hosts;     /* borrowed */
	int inotify_fd;
	int watches[WATCH_CANARIES_MAX];
	bool touched[ALL]; /* files, hosts, values: an alert was raised */
	/* to be dealt with at the end of the turn */
	bool waiting[ALL];
	char why[ALL][256];
};

static struct box_canary *of(struct event_sink *s)
{
	return (struct box_canary *)(void *)s;
}

static int on_begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	return event_begin(of(s)->next, run, e);
}

static int on_flush(struct event_sink *s, struct ward_err *e)
{
	return event_flush(of(s)->next, e);
}

static void touch(struct box_canary *c, size_t which, const char *what, const struct ward_event *v)
{
	const struct event_value *object = v ? event_get(v, FIELD_OBJECT) : NULL;

	if (c->touched[which])
		return;
	c->touched[which] = c->waiting[which] = true;
	snprintf(c->why[which], sizeof(c->why[which]), "%s", what);
	if (object && object->len)
		snprintf(c->why[which], sizeof(c->why[which]), "%s: %s %.*s", what,
			 event_kind_name((enum event_kind)v->kind),
			 (int)(object->len < 120 ? object->len : 120), object->text);
}

/* The gateway has found a value (CANARY_SENT and its name): where, and whereto. */
static bool see_sent(struct box_canary *c, const struct ward_event *v)
{
	static const char prefix[] = CANARY_SENT;
	const struct event_value *object = event_get(v, FIELD_OBJECT),
				 *path = event_get(v, FIELD_PATH), *host = event_get(v, FIELD_HOST);
	size_t n = sizeof(prefix) - 1;
	char why[256];

	if (v->kind != EVENT_CREDENTIAL_FOUND || !object || object->len <= n ||
	    memcmp(object->text, prefix, n) != 0)
		return false;
	snprintf(why, sizeof(why), "its value was sent to %.*s (%.*s)",
		 host && host->len < 180 ? (int)host->len : 0, host ? host->text : "",
		 path && path->len < 24 ? (int)path->len : 0, path ? path->text : "");
	for (size_t i = 0; c->files && i < c->files->value_count; i++)
		if (strlen(c->files->values[i].name) == object->len - n &&
		    memcmp(c->files->values[i].name, object->text + n, object->len - n) == 0)
			touch(c, VALUES + i, why, NULL);
	return true;
}

static void on_take(struct event_sink *s, const struct ward_event *v)
{
	struct box_canary *c = of(s);
	int value;

	event_emit(c->next, v);
	if (v->kind == EVENT_CANARY || v->kind == EVENT_ALERT || v->kind == EVENT_RUN_START ||
	    see_sent(c, v))
		return;
	for (size_t i = 0; i < c->hosts->len; i++)
		if (canary_is_host(v, c->hosts->items[i]))
			touch(c, HOSTS + i, "it was asked for", v);
	for (size_t i = 0; c->files && i < c->files->host_count; i++)
		if (canary_is_host(v, c->files->hosts[i]))
			touch(c, REMOTES + i, "its host was asked for", v);
	value = c->finder ? canary_in_event(c->finder, v) : -1;
	if (value >= 0)
		touch(c, VALUES + (size_t)value, "its value was used", v);
}

int box_canary_begin(struct box *b, struct ward_err *e)
{
	const struct policy *p = &b->plan->spec->policy;
	struct box_canary *c;

	if (!p->canary_hosts.len && !b->plan->live->canaries)
		return 0;
	c = b->canary = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->hosts = &p->canary_hosts;
	c->files = b->plan->live->canaries;
	c->inotify_fd = c->files && c->files->count ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
	c->next = b->result->events;
	c->sink = (struct event_sink){ .begin = on_begin, .take = on_take, .flush = on_flush };
	b->result->events = &c->sink;
	if (c->files &&
	    canary_finder_new(c->files->tokens, c->files->value_count, &c->finder, e) < 0)
		return -e->code;
	return c->files && c->files->count && c->inotify_fd < 0
		       ? ward_fail_errno(e,
					 "canary.files: no inotify (fs.inotify.max_user_instances)")
		       : 0;
}

int box_canary_arm(struct box *b, struct ward_err *e)
{
	struct box_canary *c = b->canary;

	for (size_t i = 0; c && c->files && i < c->files->count; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", c->files->dir_fd,
			 c->files->files[i].name);
		c->watches[i] = inotify_add_watch(c->inotify_fd, path, IN_OPEN);
		if (c->watches[i] < 0)
			return ward_fail_errno(e, "canary.files: cannot watch %s",
					       c->files->files[i].target);
	}
	return 0;
}

int box_canary_fd(const struct box *b)
{
	return b->canary ? b->canary->inotify_fd : -1;
}

static void read_opens(struct box_canary *c)
{
	_Alignas(struct inotify_event) char bytes[4096];
	struct inotify_event event;
	ssize_t n;

	while ((n = read(c->inotify_fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0; at + (ssize_t)sizeof(event) <= n;
		     at += (ssize_t)(sizeof(event) + event.len)) {
			memcpy(&event, bytes + at, sizeof(event));
			for (size_t i = 0; i < c->files->count; i++)
				if (event.mask & IN_Q_OVERFLOW || c->watches[i] == event.wd)
					touch(c, i, "it was opened", NULL);
		}
}

/* -- who it was */

/* Whether a process inside has the file open. */
static bool has_open(int proc_fd, const char *pid, const char *target)
{
	char path[64], link[WATCH_CANARY_PATH + 32];
	DIR *dir;
	struct dirent *entry;
	bool found = false;
	int fd;

	snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	while (dir && !found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link));

		found = n == (ssize_t)strlen(target) && memcmp(link, target, (size_t)n) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The process that has the file open, 0: none. */
static uint64_t find_opener(const struct box *b, const char *target)
{
	int fd = b->run.proc_fd < 0
			 ? -1
			 : openat(b->run.proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t pid = 0;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && !pid && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    strlen(entry->d_name) < 12 && has_open(b->run.proc_fd, entry->d_name, target))
			pid = strtoul(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return pid;
}

/* -- what is done */

static const char *name_of(const struct box_canary *c, size_t which, const char **ret_field)
{
	const struct canaries *of_run = c->files;

	*ret_field = which < HOSTS     ? "canary.files"
		     : which < REMOTES ? "canary.hosts"
		     : which < VALUES  ? "canary.git_remotes"
				       : of_run->values[which - VALUES].field;
	return which < HOSTS     ? of_run->files[which].target
	       : which < REMOTES ? c->hosts->items[which - HOSTS]
	       : which < VALUES  ? of_run->hosts[which - REMOTES]
				 : of_run->values[which - VALUES].name;
}

static void act(struct box *b, size_t which)
{
	static const uint8_t dos[] = {
		[CANARY_LOG] = WATCH_LOG, [CANARY_FREEZE] = WATCH_FREEZE, [CANARY_KILL] = WATCH_KILL
	};
	struct box_canary *c = b->canary;
	const char *field, *name = name_of(c, which, &field);
	bool opened = which < HOSTS;
	enum watch_do done =
		b->dead ? WATCH_LOG : (enum watch_do)dos[b->plan->spec->policy.canary_do];
	struct ward_event v =
		event_make(EVENT_CANARY, done == WATCH_LOG ? ACTION_LOG : ACTION_DENY, name);
	auto_buf chain = { 0 }, running = { 0 };
	uint64_t pid = 0;

	if (done != WATCH_LOG)
		box_hold(b, true, false);
	if (opened && !b->dead)
		pid = find_opener(b, name);
	if (pid)
		box_alarm_chain(b, pid, &chain);
	if (!chain.len && !b->dead)
		box_alarm_running(b, &running);
	event_text(&v, FIELD_RULE, field);
	event_text(&v, FIELD_WHY, c->why[which]);
	if (pid)
		event_number(&v, FIELD_PID, pid);
	event_text(&v, FIELD_CHANGE, watch_do_name(done));
	if (chain.len)
		event_list(&v, FIELD_CHAIN, chain.data, chain.len);
	if (running.len)
		event_list(&v, FIELD_RUNNING, running.data, running.len);
	event_emit(c->next, &v);
	strv_addf(&b->result->loud, "canary %s: %s (%s)", name, c->why[which], watch_do_name(done));
	box_alarm_stop(b, done, "canary", name, c->why[which]);
}

void box_canary_act(struct box *b)
{
	struct box_canary *c = b->canary;

	if (!c)
		return;
	if (c->inotify_fd >= 0)
		read_opens(c);
	for (size_t i = 0; i < ARRAY_LEN(c->waiting); i++)
		if (c->waiting[i]) {
			c->waiting[i] = false;
			act(b, i);
		}
}

void box_canary_end(struct box *b)
{
	struct box_canary *c = b->canary;

	if (!c)
		return;
	box_canary_act(b);
	b->result->events = c->next;
	own_close_fd(&c->inotify_fd);
	canary_finder_free(c->finder);
	free(c);
	b->canary = NULL;
}
