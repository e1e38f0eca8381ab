/*
 * Watching directories. In: a directory of the sandbox. Out: what happens in it, by inotify: as a
 * stream (WatchDir), or kept until a client asks (CreateWatcher, GetWatcherEvents). New directories
 * beneath are watched as they appear if the client wants all levels; what happens in one before
 * that is not seen, which is inotify's nature.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "envd/entry.h"
#include "envd/fs.h"
#include "envd/upload.h"

#define WATCHED_MAX 8192       /* directories of one watch */
#define KEPT_MAX (1024 * 1024) /* bytes of events that nobody has asked for */
#define WATCHERS_MAX 64
#define MASK                                                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR)

struct watch {
	int fd;
	bool recursive, include_entry;
	char root[PATH_MAX];
	struct dir {
		int wd;
		char *below; /* the root: "" */
	} * dirs;
	size_t dir_count;
	/* an upload is being renamed: what the next IN_MOVED_TO of this cookie stands for */
	uint32_t upload;
	bool upload_is_new;
};

static const struct {
	uint32_t bit;
	const char *name;
	bool entry;
} kinds[] = {
	{ IN_CREATE, "EVENT_TYPE_CREATE", true },      { IN_MOVED_TO, "EVENT_TYPE_CREATE", true },
	{ IN_MODIFY, "EVENT_TYPE_WRITE", true },       { IN_ATTRIB, "EVENT_TYPE_CHMOD", true },
	{ IN_MOVED_FROM, "EVENT_TYPE_RENAME", false }, { IN_DELETE, "EVENT_TYPE_REMOVE", false },
};

static void watch_free(struct watch *w)
{
	own_close_fd(&w->fd);
	for (size_t i = 0; i < w->dir_count; i++)
		free(w->dirs[i].below);
	free(w->dirs);
	free(w);
}

static void add_beneath(struct watch *w, const char *below, const char *full);

static int add_dir(struct watch *w, const char *below)
{
	char full[PATH_MAX];
	struct dir *more;
	char *copy;
	int wd;

	if ((size_t)snprintf(full, sizeof(full), "%s%s%s", w->root, *below ? "/" : "", below) >=
		    sizeof(full) ||
	    w->dir_count == WATCHED_MAX)
		return -ENOSPC;
	wd = inotify_add_watch(w->fd, full, MASK);
	if (wd < 0)
		return -errno;
	copy = strdup(below);
	more = copy ? realloc(w->dirs, (w->dir_count + 1) * sizeof(*w->dirs)) : NULL;
	if (!more) {
		free(copy);
		return -ENOMEM;
	}
	w->dirs = more;
	for (size_t i = 0; i < w->dir_count; i++)
		if (w->dirs[i].wd == wd) { /* it was renamed */
			free(w->dirs[i].below);
			w->dirs[i].below = copy;
			return 0;
		}
	w->dirs[w->dir_count++] = (struct dir){ wd, copy };
	if (w->recursive)
		add_beneath(w, below, full);
	return 0;
}

static void add_beneath(struct watch *w, const char *below, const char *full)
{
	auto_dir d = opendir(full);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[PATH_MAX];
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode) ||
		    (size_t)snprintf(path, sizeof(path), "%s%s%s", below, *below ? "/" : "",
				     e->d_name) >= sizeof(path))
			continue;
		(void)add_dir(w, path);
	}
}

/* Begins a watch; NULL: the call's error is set. */
static struct watch *watch_new(struct call *c)
{
	struct fs_request q = { 0 };
	struct watch *w = calloc(1, sizeof(*w));
	struct stat st;
	int r;

	if (!w) {
		call_fail(c, RPC_INTERNAL, "out of memory");
		return NULL;
	}
	r = fs_request_read(c, &q);
	w->fd = -1;
	w->recursive = q.recursive;
	w->include_entry = q.include_entry;
	if (r == 0)
		r = fs_path(c, &q.path, w->root);
	if (r == 0 && stat(w->root, &st) < 0)
		r = call_fail_path(c, errno, w->root);
	if (r == 0 && !S_ISDIR(st.st_mode))
		r = call_fail(c, RPC_INVALID_ARGUMENT, "path %s is not a directory", w->root);
	if (r == 0) {
		w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		r = w->fd < 0 ? -errno : add_dir(w, "");
		if (r < 0)
			r = call_fail(c,
				      r == -EMFILE || r == -ENOSPC ? RPC_RESOURCE_EXHAUSTED
								   : RPC_INTERNAL,
				      "cannot watch %s: %s", w->root, strerror(-r));
	}
	fs_request_free(&q);
	if (r < 0) {
		watch_free(w);
		return NULL;
	}
	return w;
}

/* One event as JSON: {"name":..,"type":..}. */
static void write_event(const struct watch *w, const char *name, size_t kind, struct buf *out)
{
	struct json j = { .out = out };
	char path[PATH_MAX];

	json_begin_object(&j, NULL);
	json_string(&j, "name", name);
	json_string(&j, "type", kinds[kind].name);
	if (w->include_entry && kinds[kind].entry &&
	    (size_t)snprintf(path, sizeof(path), "%s/%s", w->root, name) < sizeof(path)) {
		auto_buf entry = { 0 };

		if (entry_write(path, &entry) == 0) {
			buf_puts(out, ",\"entry\":");
			buf_add(out, entry.data, entry.len);
		}
	}
	json_end_object(&j);
}

struct sink {
	int (*put)(void *context, const struct buf *event); /* -1: enough */
	void *context;
};

static int take_event(struct watch *w, const struct inotify_event *e, const struct sink *s)
{
	char name[PATH_MAX];
	const char *below = NULL;
	uint32_t mask = e->mask;
	int r = 0;

	for (size_t i = 0; i < w->dir_count && !below; i++)
		if (w->dirs[i].wd == e->wd)
			below = w->dirs[i].below;
	if (!below || !e->len ||
	    (size_t)snprintf(name, sizeof(name), "%s%s%s", below, *below ? "/" : "", e->name) >=
		    sizeof(name))
		return 0;
	if (strncmp(e->name, UPLOAD_NAME, sizeof(UPLOAD_NAME) - 1) == 0) {
		if (e->mask & IN_MOVED_FROM)
			w->upload = e->cookie;
		w->upload_is_new = strncmp(e->name, UPLOAD_NEW, sizeof(UPLOAD_NEW) - 1) == 0;
		return 0;
	}
	if (e->mask & IN_MOVED_TO && e->cookie == w->upload)
		mask = w->upload_is_new ? IN_CREATE | IN_MODIFY : IN_MODIFY;
	for (size_t i = 0; i < ARRAY_LEN(kinds) && r == 0; i++)
		if (mask & kinds[i].bit) {
			auto_buf event = { 0 };

			write_event(w, name, i, &event);
			r = s->put(s->context, &event);
		}
	if (w->recursive && e->mask & IN_ISDIR && e->mask & (IN_CREATE | IN_MOVED_TO))
		(void)add_dir(w, name);
	return r;
}

/* Passes on all that has happened. */
static int drain(struct watch *w, const struct sink *s)
{
	char bytes[16384] __attribute__((aligned(8)));
	ssize_t n;

	while ((n = read(w->fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(bytes + at);

			if (take_event(w, e, s) < 0)
				return -1;
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	return 0;
}

static int put_message(void *context, const struct buf *event)
{
	auto_buf message = { 0 };

	buf_puts(&message, "{\"filesystem\":");
	buf_add(&message, event->data, event->len);
	buf_puts(&message, "}");
	return message.failed ? -1 : call_message(context, &message);
}

static int put_text(struct stream *s, const char *text)
{
	auto_buf message = { 0 };

	buf_puts(&message, text);
	return call_message(s, &message);
}

int watch_dir(struct call *c)
{
	struct watch *w = watch_new(c);
	struct sink sink = { put_message, c->stream };
	int r;

	if (!w)
		return -1;
	r = put_text(c->stream, "{\"start\":{}}");
	while (r == 0) {
		struct pollfd polls[] = { { .fd = w->fd, .events = POLLIN },
					  { .fd = stream_reset_fd(c->stream), .events = POLLIN } };

		r = poll(polls, 2, (int)c->keepalive_s * 1000);
		if (r == 0)
			r = put_text(c->stream, "{\"keepalive\":{}}");
		else if (r > 0 && polls[1].revents)
			r = -1;
		else
			r = drain(w, &sink);
	}
	watch_free(w);
	return 0; /* the client has gone */
}

/* -- watchers that are asked */

static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct watch *watch;
	char id[24];
} watchers[WATCHERS_MAX];
static unsigned long last_id;

int watch_create(struct call *c)
{
	struct watch *w = watch_new(c);
	size_t i;

	if (!w)
		return -1;
	pthread_mutex_lock(&watchers_lock);
	for (i = 0; i < WATCHERS_MAX && watchers[i].watch; i++)
		;
	if (i < WATCHERS_MAX) {
		watchers[i].watch = w;
		snprintf(watchers[i].id, sizeof(watchers[i].id), "w%lu", ++last_id);
		buf_printf(&c->answer, "{\"watcherId\":\"%s\"}", watchers[i].id);
	}
	pthread_mutex_unlock(&watchers_lock);
	if (i < WATCHERS_MAX)
		return 0;
	watch_free(w);
	return call_fail(c, RPC_RESOURCE_EXHAUSTED, "there are %d watchers already", WATCHERS_MAX);
}

static int put_list(void *context, const struct buf *event)
{
	struct buf *out = context;

	if (out->len > KEPT_MAX)
		return -1;
	buf_puts(out, out->len ? "," : "");
	buf_add(out, event->data, event->len);
	return 0;
}

/* The watcher that the message names, with the lock held; -1: the call's error is set, and the lock
 * is not held. */
static int find_watcher(struct call *c)
{
	struct fs_request q = { 0 };
	int found = -1, r = fs_request_read(c, &q);

	pthread_mutex_lock(&watchers_lock);
	for (int i = 0; i < WATCHERS_MAX && r == 0; i++)
		if (watchers[i].watch && strcmp(watchers[i].id, buf_text(&q.watcher)) == 0)
			found = i;
	if (found < 0) {
		pthread_mutex_unlock(&watchers_lock);
		if (r == 0)
			call_fail(c, RPC_NOT_FOUND, "watcher with id %s not found",
				  buf_text(&q.watcher));
	}
	fs_request_free(&q);
	return found;
}

int watch_events(struct call *c)
{
	auto_buf events = { 0 };
	struct sink sink = { put_list, &events };
	int i = find_watcher(c);

	if (i < 0)
		return -1;
	(void)drain(watchers[i].watch, &sink);
	pthread_mutex_unlock(&watchers_lock);
	buf_printf(&c->answer, "{\"events\":[%s]}", buf_text(&events));
	return events.failed ? call_fail(c, RPC_INTERNAL, "out of memory") : 0;
}

int watch_remove(struct call *c)
{
	int i = find_watcher(c);

	if (i < 0)
		return -1;
	watch_free(watchers[i].watch);
	watchers[i].watch = NULL;
	pthread_mutex_unlock(&watchers_lock);
	return 0;
}
