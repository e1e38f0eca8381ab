/*
 * The intent log. In: what an apply is about to do. Out: one file STATE/applying/ID that says so
 * until it is done, so that the next command after a kill can complete it: which run, which paths
 * and permissions, the temporary name, and a line for each path before it is touched. Reading it is
 * a pure function over bytes. The holder of the review's lock owns it. It is not synced: after a
 * power failure each file is what its file system makes of a rename.
 */
#include "review/apply_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "base/io.h"
#include "guard/guard_internal.h"
#include "state/store_internal.h"

#define HEADER "ward-apply 1"
#define LOGS "applying"

static bool is_token(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n >= 8 && n < APPLY_TOKEN_MAX && !s[n];
}

/* A path that an apply could have been asked for: relative, no way up. */
static bool is_inside(const char *path)
{
	if (*path == '/')
		return false;
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && *path == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n + (path[n] == '/');
	}
	return true;
}

static int read_line(struct apply_intent *i, const char *key, char *value, bool complete)
{
	guard_unescape(value);
	if (strcmp(key, "at") == 0 && complete) {
		free(i->at);
		i->at = strdup(value);
		return !i->at ? -ENOMEM : is_inside(value) && *value ? 0 : -EINVAL;
	}
	if (complete)
		return -EINVAL;
	if (strcmp(key, "run") == 0 && review_is_id(value)) {
		snprintf(i->id, sizeof(i->id), "%.23s", value);
	} else if (strcmp(key, "token") == 0 && is_token(value)) {
		snprintf(i->token, sizeof(i->token), "%s", value);
	} else if (strcmp(key, "with") == 0 && strcmp(value, "protected") == 0) {
		i->with_protected = true;
	} else if (strcmp(key, "with") == 0 && strcmp(value, "force") == 0) {
		i->force = true;
	} else if (strcmp(key, "with") == 0 && strcmp(value, "picks") == 0) {
		i->picked = true;
	} else if (strcmp(key, "path") == 0 && is_inside(value)) {
		strv_add(&i->paths, value);
		return i->paths.failed ? -ENOMEM : 0;
	} else {
		return -EINVAL;
	}
	return 0;
}

int apply_intent_read(const char *text, size_t n, struct apply_intent *ret_intent)
{
	auto_free char *copy = n ? strndup(text, n) : NULL;
	char *rest = copy, *line = copy ? strsep(&rest, "\n") : NULL;
	struct apply_intent i = { 0 };
	bool complete = false;
	int status = line && strcmp(line, HEADER) == 0 ? 0 : -EINVAL;

	while (status == 0 && rest && (line = strsep(&rest, "\n"))) {
		const char *key = strsep(&line, " ");

		if (!rest)
			/* the last line was cut off by the kill: what it announces was not begun */
			break;
		if (strcmp(key, "complete") == 0 && !line && !complete)
			complete = true;
		else
			status = line ? read_line(&i, key, line, complete) : -EINVAL;
	}
	if (status == 0 && (!complete || !i.id[0] || !i.token[0]))
		status = -EINVAL;
	if (status < 0) {
		apply_intent_clear(&i);
		return status;
	}
	*ret_intent = i;
	return 0;
}

void apply_intent_clear(struct apply_intent *i)
{
	strv_free(&i->paths);
	free(i->at);
	*i = (struct apply_intent){ 0 };
}

int apply_open_logs(bool make, struct ward_err *e)
{
	auto_fd state = store_open(e);
	int fd;

	if (state < 0)
		return state;
	if (make)
		return store_open_dir(state, LOGS, e);
	fd = openat(state, LOGS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void put_line(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s ", key);
	guard_escape(out, value);
	buf_puts(out, "\n");
}

static int make_token(char token[APPLY_TOKEN_MAX], struct ward_err *e)
{
	unsigned char random[12];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random numbers");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(token + 2 * i, 3, "%02x", random[i]);
	return 0;
}

static int fail_log(struct applying *a, int status)
{
	ward_fail(a->e, -status, "cannot write the log of the apply: %s", strerror(-status));
	return ward_remedy(a->e,
			   "free some space in the state directory; no path was left half applied");
}

int apply_log_begin(struct applying *a)
{
	const struct apply_request *q = a->request;
	auto_fd logs = apply_open_logs(true, a->e);
	char name[sizeof(APPLY_NEW) + REVIEW_ID_MAX];
	auto_buf text = { 0 };
	int status;

	if (logs < 0)
		return logs;
	status = make_token(a->token, a->e);
	if (status < 0)
		return status;
	buf_puts(&text, HEADER "\n");
	put_line(&text, "run", a->review->id);
	put_line(&text, "token", a->token);
	if (q->with_protected)
		put_line(&text, "with", "protected");
	if (q->force)
		put_line(&text, "with", "force");
	if (q->picked)
		put_line(&text, "with", "picks");
	for (size_t i = 0; i < q->paths->len; i++)
		put_line(&text, "path", q->paths->items[i]);
	buf_puts(&text, "complete\n");
	/* the review's lock is ours, so whatever has these names is dead */
	snprintf(name, sizeof(name), APPLY_NEW "%s", a->review->id);
	a->log_fd = openat(logs, name,
			   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0600);
	status = a->log_fd < 0 ? -errno : text.failed ? -ENOMEM : 0;
	if (status == 0)
		status = io_write_all(a->log_fd, text.data, text.len);
	if (status == 0 && renameat(logs, name, logs, a->review->id) < 0)
		status = -errno;
	if (status < 0)
		unlinkat(logs, name, 0);
	return status < 0 ? fail_log(a, status) : 0;
}

int apply_log_at(struct applying *a, const char *path)
{
	auto_buf line = { 0 };
	int status;

	put_line(&line, "at", path);
	status = line.failed ? -ENOMEM : io_write_all(a->log_fd, line.data, line.len);
	return status < 0 ? fail_log(a, status) : 0;
}

void apply_log_end(struct applying *a)
{
	struct ward_err ignored;
	auto_fd logs = a->log_fd < 0 ? -1 : apply_open_logs(false, &ignored);

	if (logs >= 0)
		unlinkat(logs, a->review->id, 0);
	own_close_fd(&a->log_fd);
	a->log_fd = -1;
}
