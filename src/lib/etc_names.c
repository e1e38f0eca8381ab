/*
 * What of /etc is wanted is a few names and a few patterns, and for the patterns the whole directory has to be listed, which takes longer
 * than all that is done with the names. So the names that were found are kept in the state directory, with the state of /etc at that
 * time. In and out: the target of a symbolic link, which is read by one call and replaced by another: two numbers of 16 digits that
 * say which directory, two that say when it was changed last, a slash, the names, each ended by a slash.
 *
 * A kept name gives nothing: whoever reads it asks the table and the host about it as if it had been listed. A directory that has
 * changed in the last two seconds is not kept, because it could change again without a new time.
 */
#include "lib/etc_names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "lib/store.h"

#define LINK "etc"
#define KEY_BYTES (4 * 16 + 1)
#define SETTLED_S 2

static void put_number(char *to, uint64_t n)
{
	for (int i = 15; i >= 0; i--, n >>= 4)
		to[i] = "0123456789abcdef"[n & 15];
}

static uint64_t moment(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

static void make_key(const struct stat *st, char key[KEY_BYTES])
{
	put_number(key, (uint64_t)st->st_dev);
	put_number(key + 16, (uint64_t)st->st_ino);
	put_number(key + 32, moment(&st->st_mtim));
	put_number(key + 48, moment(&st->st_ctim));
	key[64] = '/';
}

bool etc_names_recall(const struct stat *st, char *text, size_t n)
{
	auto_free char *state = NULL;
	struct ward_err ignored = { 0 };
	char path[PATH_MAX], key[KEY_BYTES];
	ssize_t len;

	if (store_path(&state, &ignored) < 0 || strlen(state) + sizeof("/" LINK) > sizeof(path))
		return false;
	stpcpy(stpcpy(path, state), "/" LINK);
	len = readlink(path, text, n - 1);
	make_key(st, key);
	if (len < KEY_BYTES || (size_t)len == n - 1 || text[len - 1] != '/' || memcmp(text, key, KEY_BYTES) != 0)
		return false;
	memmove(text, text + KEY_BYTES, (size_t)len - KEY_BYTES);
	text[len - KEY_BYTES] = '\0';
	return true;
}

void etc_names_begin(const struct stat *st, struct buf *list)
{
	char key[KEY_BYTES];

	make_key(st, key);
	if (st->st_mtim.tv_sec < time(NULL) - SETTLED_S)
		buf_add(list, key, sizeof(key));
}

void etc_names_keep(const struct buf *list)
{
	struct ward_err ignored = { 0 };
	auto_fd state = -1;

	if (list->failed || list->len < KEY_BYTES || list->len > PATH_MAX - 2)
		return;
	state = store_open(&ignored);
	if (state < 0)
		return;
	(void)!unlinkat(state, LINK, 0);
	(void)!symlinkat(list->data, state, LINK);	/* under no other name first: a kill leaves nothing, and who finds none reads /etc */
}
