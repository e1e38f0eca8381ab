/*
 * Sources of secrets. In: a grant. Out: its values in locked memory, or a refusal that holds
 * nothing of them. Runs in ward-secrets with the rights and the environment of the user, at the
 * start and whenever a value has to be renewed.
 *
 * env: a variable that ward was started with file: a regular file of the user's (or root's) that no
 * other process can read, and that does not exist inside: links are resolved first cmd: what a
 * program writes, without a shell; not one that the sandbox can see keyring: a key of type "user"
 * in the kernel's session or user keyring (keyctl(1)). Desktop keyrings: cmd:secret-tool lookup ...
 * http: what a Vault-style server answers, over TLS, by the program ward-secret-http
 */
#include "creds/source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/find.h"
#include "base/io.h"
#include "base/path.h"
#include "creds/answer.h"
#include "creds/run.h"

#define RAW_MAX 32768 /* what a source may give, before it is taken apart */
#define PROGRAM_MS 20000
#define SERVER_MS 15000

void secret_forget(struct safe *s, struct secret *x)
{
	for (size_t i = 0; i < GRANT_VALUES; i++)
		safe_give(s, x->values[i]);
	*x = (struct secret){ 0 };
}

bool secret_equal(const struct secret *a, const struct secret *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = a->bytes[i] == b->bytes[i] &&
		       memcmp(a->values[i], b->values[i], a->bytes[i]) == 0;
	return same;
}

/* -- from bytes to values */

static int keep(const struct source_place *p, const uint8_t *bytes, size_t n, struct secret *ret,
		struct ward_err *e)
{
	uint8_t *value;

	while (n && strchr("\r\n", bytes[n - 1]) && bytes[n - 1])
		n--;
	if (n < SECRET_LEAST) {
		ward_fail(e, EINVAL,
			  n ? "the secret has fewer than %d characters: it could not be recognized "
			      "in other text"
			    : "it contains no secret",
			  SECRET_LEAST);
		return -EINVAL;
	}
	if (n > SECRET_MOST)
		return ward_fail(e, EFBIG, "the secret has more than %d characters", SECRET_MOST);
	for (size_t i = 0; i < n; i++)
		if (bytes[i] < ' ' || bytes[i] > '~')
			return ward_fail(e, EINVAL,
					 "the secret has characters that are not allowed in a "
					 "header: line breaks or non-ASCII");
	value = ret->count < GRANT_VALUES ? safe_take(p->safe, n) : NULL;
	if (!value) {
		ward_fail(e, ENOMEM,
			  "the secrets do not fit into the memory that may be "
			  "locked, which keeps them out of swap");
		return ward_remedy(e, "raise that limit in the shell that starts ward: ulimit -l "
				      "1024");
	}
	memcpy(value, bytes, n);
	ret->values[ret->count] = value;
	ret->bytes[ret->count++] = n;
	return 0;
}

/* ID, secret and perhaps a token, separated by colons or white space. */
static int keep_parts(const struct source_place *p, const uint8_t *bytes, size_t n,
		      struct secret *ret, struct ward_err *e)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < n;) {
		size_t end = at;

		while (end < n && (!bytes[end] || !strchr(": \t\r\n", bytes[end])))
			end++;
		if (end > at)
			r = keep(p, bytes + at, end - at, ret, e);
		at = end + 1;
	}
	if (r == 0 && ret->count < 2) {
		ward_fail(e, EINVAL, "sigv4 needs an id and a secret, but there is only one value");
		return ward_remedy(e, "give ID:SECRET or ID:SECRET:TOKEN, or the output of aws "
				      "configure export-credentials");
	}
	return r;
}

static int keep_raw(const struct source_place *p, const struct policy_grant *g,
		    const uint8_t *bytes, size_t n, struct secret *ret, struct ward_err *e)
{
	uint8_t *parts;
	size_t len = RAW_MAX;
	int r;

	if (g->way != GRANT_SIGV4)
		return keep(p, bytes, n, ret, e);
	if (!n || bytes[0] != '{')
		return keep_parts(p, bytes, n, ret, e);
	parts = safe_take(p->safe, RAW_MAX);
	if (!parts)
		return ward_fail(e, ENOMEM, "cannot lock enough memory for all secrets");
	r = answer_read_aws(bytes, n, parts, &len, e);
	if (r == 0)
		r = keep_parts(p, parts, len, ret, e);
	safe_give(p->safe, parts);
	return r;
}

/* -- the sources */

typedef int fetcher(const struct source_place *p, const struct policy_grant *g, const char *from,
		    uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e);

static int from_env(const struct source_place *p, const struct policy_grant *g, const char *from,
		    uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e)
{
	bool several = strchr(from, ',') != NULL;
	unsigned count = 0;
	int r = 0;

	(void)g;
	while (r == 0 && *from) {
		size_t n = strcspn(from, ",");
		auto_free char *name = strndup(from, n);
		const char *value = name ? getenv(name) : NULL;

		from += n + (from[n] == ',');
		count++;
		if (!value && count == 3)
			break; /* long-lived AWS keys have no session token */
		if (!value || !*value) {
			ward_fail(e, ENOENT, "the variable %.100s is not set where ward runs",
				  name ? name : "");
			return ward_remedy(
				e,
				"export %.100s=..., or use another source: file:PATH, cmd:COMMAND",
				name ? name : "");
		}
		if (several) {
			r = keep(p, (const uint8_t *)value, strlen(value), ret, e);
		} else if (strlen(value) <= RAW_MAX) {
			*ret_n = strlen(value);
			memcpy(raw, value, *ret_n);
		} else {
			r = ward_fail(e, EFBIG,
				      "the variable is longer than the maximum length of a secret");
		}
	}
	return r;
}

static bool is_seen(const char *path, const struct strv *seen)
{
	for (size_t i = 0; i < seen->len; i++)
		if (path_is_beneath(path, seen->items[i]))
			return true;
	return false;
}

static int check_file(int fd, struct ward_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot access the file");
	if (!S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "it is not a regular file");
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		ward_fail(e, EPERM, "the file belongs to user %u, which could change it",
			  st.st_uid);
		return ward_remedy(e, "copy it to a file of your own with mode 600");
	}
	if (st.st_mode & 077) {
		ward_fail(e, EPERM, "other users may read or write the file (mode %03o)",
			  st.st_mode & 0777);
		return ward_remedy(
			e,
			"chmod 600 the file; if others could read it for long, rotate the secret");
	}
	return 0;
}

static int from_file(const struct source_place *p, const struct policy_grant *g, const char *from,
		     uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e)
{
	const char *home = getenv("HOME");
	auto_free char *path = NULL, *real = NULL;
	auto_fd fd = -1;
	size_t n = 0;
	int r;

	(void)g;
	(void)ret;
	path = *from == '~' && home && *home == '/' ? path_join(home, from + 2) : strdup(from);
	real = path && *path == '/' ? realpath(path, NULL) : NULL;
	if (!real)
		return ward_fail_errno(e, "cannot find the file %.300s", from);
	if (is_seen(real, p->seen)) {
		ward_fail(e, EACCES, "%.300s is visible inside the sandbox", real);
		return ward_remedy(e, "keep secrets outside the workspace and all mounts");
	}
	fd = open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return ward_fail_errno(e, "cannot open %.300s", real);
	r = check_file(fd, e);
	while (r == 0 && n < RAW_MAX) {
		ssize_t got = read(fd, raw + n, RAW_MAX - n);

		if (got < 0)
			return ward_fail_errno(e, "cannot read %.300s", real);
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n;
	return r < 0 ? ward_wrap(e, "%.300s", real)
	       : n == RAW_MAX
		       ? ward_fail(e, EFBIG, "%.300s is longer than the maximum length of a secret",
				   real)
		       : 0;
}

static int from_cmd(const struct source_place *p, const struct policy_grant *g, const char *from,
		    uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e)
{
	auto_strv words = { 0 };
	auto_free char *path = NULL;
	int r = grant_command_words(from, &words);

	(void)g;
	(void)ret;
	if (r < 0)
		return ward_fail(e, -r, "not a command");
	r = find_program(words.items[0], p->seen, &path, e);
	return r < 0 ? r
		     : run_program(path, words.items, NULL, 0, PROGRAM_MS, p->meanwhile, raw,
				   RAW_MAX, ret_n, e);
}

static int from_keyring(const struct source_place *p, const struct policy_grant *g,
			const char *from, uint8_t *raw, size_t *ret_n, struct secret *ret,
			struct ward_err *e)
{
	static const int rings[] = { KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING,
				     KEY_SPEC_USER_SESSION_KEYRING };
	long key = -1, n;

	(void)p;
	(void)g;
	(void)ret;
	for (size_t i = 0; i < ARRAY_LEN(rings) && key < 0; i++)
		key = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", from, 0);
	if (key < 0) {
		ward_fail_errno(e,
				"there is no key \"%.200s\" of type user in the kernel's session "
				"and user keyrings",
				from);
		return ward_remedy(e,
				   "keyctl padd user %.200s @u < FILE; a desktop's keyring: "
				   "cmd:secret-tool lookup ...",
				   from);
	}
	n = syscall(SYS_keyctl, KEYCTL_READ, key, raw, RAW_MAX);
	if (n < 0 || n > RAW_MAX)
		return ward_fail_errno(e, "cannot read the key \"%.200s\"", from);
	*ret_n = (size_t)n;
	return 0;
}

/* The program says STATUS, a line break and the answer. */
static int take_answer(const struct policy_grant *g, const uint8_t *raw, size_t n, uint8_t *value,
		       size_t *ret_n, struct secret *ret, struct ward_err *e)
{
	const uint8_t *body = memchr(raw, '\n', n);
	uint64_t lease = 0;
	int r;

	if (!body || n < 4 || memcmp(raw, "200\n", 4) != 0) {
		ward_fail(e, EIO, "the server answered with status %.*s",
			  body && body - raw == 3 ? 3 : 1, body ? (const char *)raw : "?");
		return ward_remedy(
			e,
			"403: the token is invalid or expired; 404: there is nothing at that path");
	}
	if (g->way == GRANT_SIGV4 && !g->field) {
		*ret_n = n - 4;
		memcpy(value, body + 1, *ret_n);
		return 0;
	}
	*ret_n = RAW_MAX;
	r = answer_read(body + 1, n - 4, g->field, value, ret_n, &lease, e);
	ret->lease_ms = lease < UINT32_MAX ? lease * 1000 : 0;
	return r;
}

static int fetch_raw(const struct source_place *p, const struct policy_grant *g, const char *source,
		     uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e);

static int from_http(const struct source_place *p, const struct policy_grant *g, const char *from,
		     uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e)
{
	char url[4096], path[64];
	char *const argv[] = { (char *)(uintptr_t) "ward-secret-http", url, NULL };
	uint8_t *answer = safe_take(p->safe, RAW_MAX), *token = safe_take(p->safe, RAW_MAX);
	size_t token_bytes = 0, n = 0;
	int r = answer && token ? 0
				: ward_fail(e, ENOMEM, "cannot lock enough memory for all secrets");

	snprintf(url, sizeof(url), "%s", from);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/ward-secret-http", p->program_dir_fd);
	if (r == 0 && g->token)
		r = fetch_raw(p, g, g->token, token, &token_bytes, ret, e);
	if (r < 0 && g->token)
		ward_wrap(e, "token");
	while (r == 0 && token_bytes &&
	       (token[token_bytes - 1] == '\n' || token[token_bytes - 1] == '\r'))
		token_bytes--;
	if (r == 0)
		r = run_program(path, argv, token, token_bytes, SERVER_MS, p->meanwhile, answer,
				RAW_MAX, &n, e);
	if (r == 0)
		r = take_answer(g, answer, n, raw, ret_n, ret, e);
	safe_give(p->safe, answer);
	safe_give(p->safe, token);
	return r < 0 ? ward_wrap(e, "%.200s", from) : 0;
}

static int fetch_raw(const struct source_place *p, const struct policy_grant *g, const char *source,
		     uint8_t *raw, size_t *ret_n, struct secret *ret, struct ward_err *e)
{
	static fetcher *const fetchers[] = { [GRANT_ENV] = from_env,
					     [GRANT_FILE] = from_file,
					     [GRANT_CMD] = from_cmd,
					     [GRANT_KEYRING] = from_keyring,
					     [GRANT_HTTP] = from_http };
	enum grant_from from = g->from;
	const char *rest = source;

	if (source != g->source && !grant_source_split(source, &from, &rest))
		return ward_fail(e, EINVAL, "not a source");
	if (from >= ARRAY_LEN(fetchers) || (source != g->source && from == GRANT_HTTP))
		return ward_fail(e, EINVAL,
				 "a secret from ward secret grant cannot be fetched again");
	*ret_n = 0;
	return fetchers[from](p, g, rest, raw, ret_n, ret, e);
}

int source_fetch(const struct source_place *p, const struct policy_grant *g, struct secret *ret,
		 struct ward_err *e)
{
	uint8_t *raw = safe_take(p->safe, RAW_MAX);
	size_t n = 0;
	int r;

	*ret = (struct secret){ 0 };
	if (!raw) {
		ward_fail(e, ENOMEM, "cannot lock enough memory for all secrets");
		return ward_remedy(e, "ulimit -l 1024");
	}
	r = fetch_raw(p, g, g->source, raw, &n, ret, e);
	if (r == 0 && !ret->count)
		r = keep_raw(p, g, raw, n, ret, e);
	safe_give(p->safe, raw);
	if (r < 0)
		secret_forget(p->safe, ret);
	return r;
}

int source_read(const struct source_place *p, const struct policy_grant *g, int fd,
		struct secret *ret, struct ward_err *e)
{
	uint8_t *raw = safe_take(p->safe, RAW_MAX);
	uint64_t until = io_now_ms() + 5000;
	size_t n = 0;
	int r = raw ? 0 : ward_fail(e, ENOMEM, "cannot lock enough memory for all secrets");

	*ret = (struct secret){ 0 };
	while (r == 0 && n < RAW_MAX) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		uint64_t now = io_now_ms();
		ssize_t got = -1;

		if (now >= until || poll(&ready, 1, (int)(until - now)) == 0)
			r = ward_fail(e, ETIMEDOUT, "the secret did not arrive within 5 seconds");
		else if ((got = read(fd, raw + n, RAW_MAX - n)) < 0 && errno != EINTR)
			r = ward_fail_errno(e, "cannot read the secret");
		if (got == 0)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	if (r == 0)
		r = keep_raw(p, g, raw, n, ret, e);
	safe_give(p->safe, raw);
	if (r < 0)
		secret_forget(p->safe, ret);
	return r;
}
