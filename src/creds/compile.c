/*
 * The scanner's database. In: every secret and every placeholder. Out: one serialised vectorscan
 * database of all their forms. The compiler copies what it is given all over its heap, so it runs
 * in a child of its own, which ends when it has written the result: no such copy outlives it.
 * ward-keys needs the small part of vectorscan that only looks.
 */
#include "creds/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <hs/hs_compile.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"
#include "confine/confine.h"
#include "creds/forms.h"

/* characters: an attacker who knows all but the last can try that one out, so they are more than is
 * ever seen of a secret otherwise (SCAN_SEEN_MAX) */
#define BEGUN_LEAST 16
#define BEGUN_MOST 64 /* enough of a long one, and patterns stay small */

_Static_assert(FORMS + FORMS_BASIC <= PATTERN_BEGUN, "a form fits into a pattern's id");
_Static_assert(GRANT_VALUES + EARLIER_MAX <= 256, "a value fits into a pattern's id");

struct pattern {
	uint32_t id, bytes;
};

/* How many characters other secrets of its kind begin with, too. Of a JSON web token only what it
 * ends with is its own: before that stand the head and the claims, of an encrypted one the head. */
static size_t common_length(const uint8_t *bytes, size_t n)
{
	const uint8_t *first, *second, *third;

	if (n < 3 || memcmp(bytes, "eyJ", 3) != 0)
		return 0;
	first = memchr(bytes, '.', n);
	second = first ? memchr(first + 1, '.', (size_t)(bytes + n - first - 1)) : NULL;
	third = second ? memchr(second + 1, '.', (size_t)(bytes + n - second - 1)) : NULL;
	return second ? (size_t)((third ? first : second) + 1 - bytes) : 0;
}

/* A server may cut off what it sends: from so many characters of the form on it is the secret that
 * begins there, what its placeholder and others of its kind begin with and half of the rest, or
 * enough of it. 0: none. */
static size_t begun_length(const uint8_t *bytes, size_t n, const uint8_t *shown, size_t shown_n,
			   size_t form_n)
{
	size_t known = 0, common = common_length(bytes, n), half;

	while (known < n && known < shown_n && bytes[known] == shown[known])
		known++;
	known = known > common ? known : common;
	half = (n - known) / 2 < BEGUN_MOST ? (n - known) / 2 : BEGUN_MOST;
	return half >= BEGUN_LEAST ? form_n * (known + half) / n + 1 : 0;
}

/* Where texts go. */
struct emitting {
	scanner_emit *emit;
	void *to;
	const struct policy_grant *grant;
	uint8_t *room;
	bool fine;
};

static void emit_text(struct emitting *e, uint32_t id, size_t n)
{
	struct pattern p = { .id = id, .bytes = (uint32_t)n };

	if (n && e->fine)
		e->fine = e->emit(e->to, &p, sizeof(p)) && e->emit(e->to, e->room, n);
}

/* Hands out (id, length, bytes) of each form. What a grant sends as Basic, writers get in base64.
 * shown: the placeholder of a secret; NULL: these are one themselves. */
static void emit_forms(struct emitting *e, uint32_t id, const uint8_t *bytes, size_t n,
		       const uint8_t *shown, size_t shown_n)
{
	const struct policy_grant *g = e->grant;
	unsigned count = FORMS + (g->way == GRANT_BASIC ? FORMS_BASIC : 0);
	size_t before = g->user ? strlen(g->user) + 1 : 1;

	for (unsigned f = 0; f < count; f++) {
		size_t len = f < FORMS ? form_write((enum form)f, bytes, n, e->room)
				       : form_write_basic((enum form)(f - FORMS + FORM_WRITERS),
							  bytes, n, before, e->room);

		emit_text(e, id | f, len);
		if (shown && len)
			emit_text(e, id | f | PATTERN_BEGUN,
				  begun_length(bytes, n, shown, shown_n, len));
	}
	explicit_bzero(e->room, FORM_ROOM(n));
}

bool scanner_texts(struct keeper *k, scanner_emit *emit, void *to)
{
	struct emitting e = { .emit = emit,
			      .to = to,
			      .room = safe_take(&k->safe, FORM_ROOM(SECRET_MOST)) };

	e.fine = e.room;
	for (size_t i = 0; e.fine && i < k->count; i++) {
		struct kept *g = k->kept[i];
		e.grant = &g->grant;
		for (size_t v = 0; v < g->secret.count; v++)
			emit_forms(&e, PATTERN_ID(i, v, 0, 0), g->secret.values[v],
				   g->secret.bytes[v], g->shown[v], g->shown_bytes[v]);
		for (size_t v = 0; v < g->earlier_count; v++) {
			size_t which = g->earlier[v].which;

			emit_forms(&e, PATTERN_ID(i, GRANT_VALUES + v, 0, 0), g->earlier[v].value,
				   g->earlier[v].bytes, g->shown[which], g->shown_bytes[which]);
		}
		for (size_t v = 0; v < GRANT_VALUES && g->shown[v]; v++)
			emit_forms(&e, PATTERN_ID(i, v, 1, 0), g->shown[v], g->shown_bytes[v], NULL,
				   0);
	}
	safe_give(&k->safe, e.room);
	return e.fine;
}

static bool write_to(void *fd, const void *bytes, size_t n)
{
	return io_write_all(*(int *)fd, bytes, n) == 0;
}

/* -- the child */

/* All texts, as the compiler takes them. Lives until the end of this process. */
struct patterns {
	struct buf all;
	const char **texts;
	size_t *bytes;
	unsigned *ids, *flags, count;
};

/* A pattern's id is its place in the row of texts: ward-keys has the same row. */
static bool read_patterns(int fd, struct patterns *ret)
{
	struct pattern p;
	size_t at = 0, most;

	if (io_read_all(fd, 64 * 1024 * 1024, &ret->all) < 0)
		return false;
	most = ret->all.len / sizeof(p) + 1;
	ret->texts = calloc(most, sizeof(*ret->texts));
	ret->bytes = calloc(most, sizeof(*ret->bytes));
	ret->ids = calloc(most, sizeof(*ret->ids));
	ret->flags = calloc(most, sizeof(*ret->flags));
	if (!ret->texts || !ret->bytes || !ret->ids || !ret->flags)
		return false;
	while (at + sizeof(p) <= ret->all.len) {
		memcpy(&p, ret->all.data + at, sizeof(p));
		at += sizeof(p);
		if (p.bytes > ret->all.len - at)
			return false;
		ret->texts[ret->count] = ret->all.data + at;
		ret->bytes[ret->count] = p.bytes;
		ret->ids[ret->count] = ret->count;
		ret->count++;
		at += p.bytes;
	}
	return at == ret->all.len && ret->count;
}

static int compile_child(int in_fd, int out_fd)
{
	struct patterns p = { .count = 0 };
	hs_compile_error_t *error = NULL;
	hs_database_t *db = NULL;
	char *serial = NULL;
	size_t n = 0;

	if (!read_patterns(in_fd, &p) ||
	    hs_compile_lit_multi(p.texts, p.flags, p.ids, p.bytes, p.count, HS_MODE_BLOCK, NULL,
				 &db, &error) != HS_SUCCESS ||
	    hs_serialize_database(db, &serial, &n) != HS_SUCCESS)
		return 1;
	return io_write_all(out_fd, serial, n) < 0;
}

static int read_result(struct keeper *k, int fd, uint8_t **ret, size_t *ret_n)
{
	uint8_t *all = safe_take(&k->safe, KEYS_FRAME_MAX);
	size_t n = 0, room = KEYS_FRAME_MAX;

	while (!all && room > 16384) {
		room /= 2;
		all = safe_take(&k->safe, room);
	}
	while (all && n < room) {
		ssize_t got = read(fd, all + n, room - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (!all || !n || n == room) {
		safe_give(&k->safe, all);
		return -ENOMEM;
	}
	/* else giving it back would touch pages that are not needed */
	safe_shrink(&k->safe, all, n);
	*ret = all;
	*ret_n = n;
	return 0;
}

int scanner_compile(struct keeper *k, uint8_t **ret, size_t *ret_n, struct ward_err *e)
{
	int in[2], out[2], r, status = 1;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	if (pipe2(out, O_CLOEXEC) < 0) {
		close(in[0]);
		close(in[1]);
		return ward_fail_errno(e, "cannot make a pipe");
	}
	pid = fork();
	if (pid == 0) {
		close(in[1]);
		close(out[0]);
		_exit(confine_enter(PROC_SCANNER, NULL, e) < 0 ? 1 : compile_child(in[0], out[1]));
	}
	close(in[0]);
	close(out[1]);
	r = pid < 0 ? -errno : scanner_texts(k, write_to, &in[1]) ? 0 : -ENOMEM;
	close(in[1]);
	if (r == 0)
		r = read_result(k, out[0], ret, ret_n);
	close(out[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && status) {
		safe_give(&k->safe, *ret);
		r = -EIO;
	}
	if (r < 0) {
		ward_fail(e, -r, "cannot compile the patterns for the secrets");
		return ward_remedy(e, "ulimit -l 2048 if there are many or long secrets");
	}
	return 0;
}
