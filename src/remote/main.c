/*
 * ward-remote: `ward --host URL VERB`, or any of those verbs with WARD_HOST set. In: argv. Out: an
 * exit code, as the same verb of ward has it. A program of its own, so that ward needs no libcurl.
 * Runs with the user's rights until it connects; then it keeps its descriptors, a way to look up
 * names, and the one port of the server (row REMOTE of tables/procs.def). It is given a server's
 * bytes, so it starts no program and opens no file of the user's from then on.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "confine/confine.h"
#include "remote/http.h"

int remote_fail(const struct remote *r, const struct ward_err *e)
{
	return say_error(e, r->json, EXIT_REFUSED);
}

int remote_confine(struct remote *r, int dir_fd, struct ward_err *e)
{
	const struct confine_tree trees[] = {
		{ .path = r->ca_file ? r->ca_file : "/nonexistent",
		  .fd = -1,
		  .rights = CONFINE_READ },
		{ .path = NULL, .fd = dir_fd, .rights = CONFINE_WRITE },
	};
	struct confine_own own = { .trees = trees, .tree_count = dir_fd >= 0 ? 2 : 1 };
	int result = http_check_url(r->host, &own.port, e);

	if (result == 0)
		result = confine_enter(PROC_REMOTE, &own, e);
	return result == 0 ? http_open(r, &r->http, e) : result;
}

static int help(void)
{
	auto_buf out = { 0 };

	buf_puts(&out, "ward --host URL [--token-file FILE] [--ca-file FILE] VERB ...\n\n");
#define VERB(id, name, min, max, about) buf_printf(&out, "  %-9s %s\n", #name, about);
#include "remote/verbs.def"
	buf_puts(&out, "\nThe key is in FILE, in WARD_TOKEN, or in ~/.config/ward/token. WARD_HOST "
		       "stands for --host.\n");
	return say_out(&out, EXIT_FINE);
}

static int run(struct remote *r)
{
	switch (r->verb) {
#define VERB(id, name, ...)                                                                        \
	case REMOTE_##id:                                                                          \
		return remote_##name(r);
#include "remote/verbs.def"
	case REMOTE_VERBS:
		break;
	}
	return EXIT_REFUSED;
}

static bool asks_help(int argc, char **argv)
{
	for (int i = 1; i < argc && argv[i][0] == '-'; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return argc > 3 && strcmp(argv[argc - 1], "--help") == 0 &&
	       strcmp(argv[1], "--host") == 0 && argc == 4;
}

static int without_slash(struct remote *r, char *ret, size_t n, struct ward_err *e)
{
	size_t len = strlen(r->host);

	if (len >= n)
		return ward_fail(e, EINVAL, "the server's address is too long");
	memcpy(ret, r->host, len + 1);
	if (len && ret[len - 1] == '/')
		ret[len - 1] = '\0';
	r->host = ret;
	return 0;
}

int main(int argc, char **argv)
{
	static char host[2048];
	struct ward_err e = { 0 };
	struct remote r;
	unsigned port;
	int code;

	signal(SIGPIPE, SIG_IGN);
	if (asks_help(argc, argv))
		return help();
	if (remote_read(&r, argc, argv, &e) < 0 || without_slash(&r, host, sizeof(host), &e) < 0)
		return say_error(&e, false, r.verb == REMOTE_EXEC ? EXIT_REFUSED : EXIT_USAGE);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return EXIT_REFUSED;
	if (http_check_url(r.host, &port, &e) < 0 || remote_read_token(&r, &e) < 0)
		code = remote_fail(&r, &e);
	else if (r.verb != REMOTE_CP && remote_confine(&r, -1, &e) < 0)
		code = remote_fail(&r, &e);
	else
		code = run(&r);
	http_close(r.http);
	strv_free(&r.envs);
	return code;
}
