/*
 * Reading journals. In: STATE/audit, whose files any process with the user's rights may have
 * changed. Out: lines, names. Run by ward-audit. Files are read, never mapped: one that is cut
 * while it is read must not end the reader.
 */
#include "audit/lines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BUFFER (1 << 20)

int lines_open(struct lines *l, int audit_fd, const char *name)
{
	*l = (struct lines){ .fd = openat(audit_fd, name,
					  O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) };
	snprintf(l->name, sizeof(l->name), "%s", name);
	if (l->fd < 0)
		return -errno;
	l->buffer = malloc(BUFFER);
	if (l->buffer)
		return 0;
	lines_close(l);
	return -ENOMEM;
}

void lines_close(struct lines *l)
{
	own_close_fd(&l->fd);
	free(l->buffer);
	*l = (struct lines){ .fd = -1 };
}

/* More bytes behind those that are there. > 0: some have come. */
static ssize_t fill(struct lines *l)
{
	ssize_t n;

	memmove(l->buffer, l->buffer + l->at, l->len - l->at);
	l->len -= l->at;
	l->at = 0;
	do
		n = read(l->fd, l->buffer + l->len, BUFFER - l->len);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		l->len += (size_t)n;
	return n < 0 ? -errno : n;
}

int lines_next(struct lines *l, const char **ret_line, size_t *ret_len)
{
	size_t looked = 0;

	for (;;) {
		const char *begin = l->buffer + l->at,
			   *end = memchr(begin + looked, '\n', l->len - l->at - looked);
		ssize_t n;

		if (end) {
			*ret_line = begin;
			*ret_len = (size_t)(end - begin) + 1;
			l->at += *ret_len;
			l->number++;
			return 1;
		}
		looked = l->len - l->at;
		if (looked >= 4 * EVENT_LINE_MAX)
			return -EBADMSG;
		n = fill(l);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
	}
	return 0;
}

void lines_files(int audit_fd, const char *run, struct strv *ret, bool *ret_live)
{
	char name[PLACE_NAME];
	struct stat st;

	*ret_live = false;
	for (int i = 0;; i++) {
		if (run)
			place_name(name, PLACE_RUNS, run, i);
		else
			snprintf(name, sizeof(name), "index.%d.jsonl", i);
		if (fstatat(audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		strv_add(ret, name);
	}
	if (run)
		place_name(name, PLACE_RUNS, run, -1);
	else
		snprintf(name, sizeof(name), PLACE_INDEX);
	if (fstatat(audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		strv_add(ret, name);
		return;
	}
	if (!run)
		return;
	place_name(name, PLACE_LIVE, run, -1);
	if (fstatat(audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		strv_add(ret, name);
		*ret_live = true;
	}
}

/* "ID.jsonl", "ID.3.jsonl" */
static void add_run(struct strv *ret, const char *name)
{
	char id[48];
	size_t n = strcspn(name, ".");

	if (n == 0 || n >= sizeof(id) || strcmp(name + strlen(name) - 5, "jsonl") != 0)
		return;
	memcpy(id, name, n);
	id[n] = '\0';
	if (place_is_id(id))
		strv_add(ret, id);
}

int lines_runs(int audit_fd, struct strv *ret, struct ward_err *e)
{
	static const char *const dirs[] = { PLACE_RUNS, PLACE_LIVE };
	size_t kept = 0;

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		int fd = openat(audit_fd, dirs[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		auto_dir list = fd < 0 ? NULL : fdopendir(fd);

		if (!list) {
			own_close_fd(&fd);
			continue;
		}
		for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
			if (strlen(entry->d_name) > 6)
				add_run(ret, entry->d_name);
	}
	strv_sort(ret);
	for (size_t i = 0; i < ret->len; i++) { /* each once */
		if (kept && strcmp(ret->items[kept - 1], ret->items[i]) == 0)
			free(ret->items[i]);
		else
			ret->items[kept++] = ret->items[i];
	}
	ret->len = kept;
	if (ret->items)
		ret->items[kept] = NULL;
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
