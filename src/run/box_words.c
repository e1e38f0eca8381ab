/*
 * What the last words of a failed command lead to. In: the end of its standard error (tail.h), read
 * by complaint.c. Out: denials as if they had been seen: a file or a program that the host has and
 * the sandbox does not, a file that cannot be written, a login by ssh without a key, a limit that
 * the kernel held by failing a call. Runs in the supervisor after the sandbox is dead.
 *
 * The words are the sandbox's: it can name what it likes, as it can with the paths that it opens
 * (missing.c), and gets no answer. So nothing is offered that ward would not offer for an open that
 * was seen: learn_may_advise() judges every path, and a limit is doubled at most.
 */
#include "run/box_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "event/table_names.h"
#include "observe/complaint.h"
#include "observe/explain.h"
#include "observe/missing.h"
#include "observe/names.h"
#include "observe/observe.h"
#include "observe/unreached.h"
#include "plan/path_view.h"
#include "plan/plan_root.h"

#define REPORTED_MAX 4

struct hearing {
	struct box *b;
	struct path_view view;
	size_t reported, reached;
	/* files are watched, or are those of an image, or would not help the program */
	bool limits_only;
};

/* ---- limits ---- */

static void report_limit(struct box *b, enum limit l, const char *why)
{
	const struct plan_limit *limit = &b->plan->limits[l];
	struct ward_event v = event_make(EVENT_LIMIT, ACTION_DENY, limit_name(l));
	auto_buf what = { 0 }, line = { 0 };

	buf_printf(&what, "limit on %s", limit_name(l));
	if (limit->value == POLICY_NONE || limit->held_by == HELD_NONE || b->result->usage.hit[l] ||
	    box_is_reported(b->result, buf_text(&what)))
		return;
	explain_limit_line(l, limit->value, &line);
	if (what.failed || line.failed)
		return;
	event_number(&v, FIELD_VALUE, limit->value);
	event_text(&v, FIELD_HELD_BY, held_by_name(limit->held_by));
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, limit_option(l));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&line));
}

/* ---- files and programs ---- */

static void report_hidden(struct box *b, const char *path)
{
	static const char why[] = "the policy hides it (filesystem.hide, --hide or .aiignore)",
			  remedy[] = "take its pattern out of that list, if the command may "
				     "read it";
	struct ward_event v = event_make(EVENT_FILE_MISSING, ACTION_DENY, path);
	auto_buf what = { 0 };

	buf_puts(&what, "file ");
	text_escape(&what, path);
	event_text(&v, FIELD_RULE, "filesystem.hide");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, remedy);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	if (!what.failed)
		result_deny(b->result, buf_text(&what), why, remedy);
}

static void report_protected(struct box *b, const char *path)
{
	static const char why[] = "it is protected, because programs that run with your rights "
				  "read it";
	const char *rest = path + strlen(b->plan->workspace);
	struct ward_event v = event_make(EVENT_FILE_GUARD, ACTION_DENY, path);
	auto_buf what = { 0 }, remedy = { 0 };

	if (!path_is_beneath(path, b->plan->workspace) || *rest != '/' || !text_is_plain(rest))
		return;
	buf_printf(&what, "writing %s", path);
	/* a name alone would be one of every directory */
	buf_printf(&remedy, "filesystem.protect: [\"!%s\"]",
		   strchr(rest + 1, '/') ? rest + 1 : rest);
	if (what.failed || remedy.failed)
		return;
	event_text(&v, FIELD_RULE, "filesystem.protect");
	event_text(&v, FIELD_WHY, why);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&remedy));
}

/* A device is given by no path: walk_names.c does not even look there. */
static void report_device(struct box *b, const char *path)
{
	static const char why[] = "devices of the host are not inside";
	bool gpu = strncmp(path, "/dev/nvidia", 11) == 0 || path_is_beneath(path, "/dev/dri") ||
		   strcmp(path, "/dev/kfd") == 0;
	const char *remedy = gpu ? "--gpus all" : "no option gives it; run the command outside";
	struct ward_event v = event_make(EVENT_FILE_MISSING, ACTION_DENY, path);
	auto_buf what = { 0 };
	struct stat st;

	if (lstat(path, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return;
	buf_puts(&what, "file ");
	text_escape(&what, path);
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, remedy);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	if (!what.failed)
		result_deny(b->result, buf_text(&what), why, remedy);
}

/* A directory that does not exist inside, or that would have to be made in a private one. */
static bool is_elsewhere(const struct hearing *h, const char *dir)
{
	const char *slash = strrchr(dir, '/');
	auto_free char *above = slash ? strndup(dir, (size_t)(slash - dir)) : NULL;

	switch (path_view_find(&h->view, dir, NULL)) {
	case PATH_VIEW_ABSENT:
		return true;
	case PATH_VIEW_PRIVATE:
		return above && above[0] &&
		       path_view_find(&h->view, above, NULL) == PATH_VIEW_PRIVATE;
	case PATH_VIEW_HIDDEN:
	case PATH_VIEW_READ:
	case PATH_VIEW_PROTECTED:
	case PATH_VIEW_WRITE:
		break;
	}
	return false;
}

/* At isolation level landlock nothing can be mounted: what the user's home has is not in the
 * sandbox's. */
static void report_home(struct box *b, const char *path, const char *home)
{
	const char *rest = path + strlen(path_view_of(b->plan).own_tmp);
	auto_free char *host = path_join(home, *rest ? rest + 1 : ".");

	if (host && *rest && box_is_on_host(host))
		box_report_missing(b->result, path, host,
				   "the home of the sandbox is another directory, and at isolation "
				   "level landlock no file can be shown in it");
}

/* The name as the host has it: the private home's files are looked for in the user's own. */
static void hear_path(struct hearing *h, const char *path, enum path_view_access access,
		      bool denied)
{
	const char *home = getenv("HOME"), *slash = strrchr(path, '/');
	char host[PATH_MAX];
	auto_free char *parent = strndup(path, (size_t)(slash - path)),
		       *own_home = home && *home == '/' ? path_clean(home) : NULL;

	if (strlen(path) >= sizeof(host) - 1 || box_is_reported(h->b->result, path))
		return;
	if (path_is_beneath(path, "/dev")) {
		report_device(h->b, path);
		return;
	}
	if (path_is_beneath(path, "/sys") || path_is_beneath(path, "/proc")) {
		box_report_kernels(h->b, path);
		h->reported++;
		return;
	}
	if (h->view.unmounted && own_home && path_is_beneath(path, h->view.own_tmp)) {
		report_home(h->b, path, own_home);
		h->reported++;
		return;
	}
	observe_host_path(path, own_home, host);
	if (missing_is_noise(path) || (access != PATH_VIEW_ABSENT && access != PATH_VIEW_PRIVATE) ||
	    (access == PATH_VIEW_PRIVATE && denied))
		return;
	if (box_is_on_host(host) ||
	    (unreached_socket_advice(host) && parent && parent[0] && box_is_on_host(parent))) {
		box_report_missing(h->b->result, path, host,
				   !box_is_on_host(host) ? "sockets of the host are not inside"
				   : access == PATH_VIEW_ABSENT
					   ? "the host has it, the sandbox does not"
					   : "the host has it; the sandbox has a directory of its "
					     "own there");
		h->reported++;
	} else if (parent && parent[0] && strcmp(host, path) == 0 && box_is_on_host(parent) &&
		   is_elsewhere(h, parent)) {
		/* it may have been to be made: programs often say the same then */
		box_report_absent(h->b, path);
		h->reported++;
	}
}

/* Its reader was refused: who may read it wanted to write it, and what does not exist was to be
 * made. */
static bool was_to_be_written(const char *path)
{
	return !box_is_on_host(path) || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0;
}

static void hear_file(struct hearing *h, const struct complaint *c)
{
	auto_free char *path =
		c->word[0] == '/' ? path_clean(c->word) : path_join(h->b->plan->cwd, c->word);
	bool certain = c->word[0] == '/' || c->word[0] == '.'; /* else it may be any word */
	enum path_view_access view;

	if (h->limits_only || h->reported >= REPORTED_MAX || !path || !path[1])
		return;
	if (c->kind == COMPLAINT_DENIED && !certain && h->view.unmounted &&
	    h->b->plan->spec->policy.fs_mode == FS_MODE_READ_ONLY) {
		/* Landlock's answer where another file system would be read-only */
		box_report_unwritable(h->b, h->b->plan->cwd);
		return;
	}
	view = path_view_find(&h->view, path, NULL);
	if (view == PATH_VIEW_PROTECTED && c->kind != COMPLAINT_ABSENT) {
		if (box_is_on_host(path))
			report_protected(h->b, path);
	} else if (view == PATH_VIEW_HIDDEN) {
		if (box_is_on_host(path))
			report_hidden(h->b, path);
	} else if (c->kind == COMPLAINT_READ_ONLY) {
		if (certain && view < PATH_VIEW_PROTECTED) {
			box_report_unwritable(h->b, path);
			h->reported++;
		}
	} else if (certain && c->kind == COMPLAINT_DENIED && view == PATH_VIEW_READ &&
		   box_is_systems(path) && was_to_be_written(path)) {
		/* what gVisor and Landlock answer, in place of a read-only file system */
		box_report_unwritable(h->b, path);
		h->reported++;
	} else if (certain) {
		if (c->writes && c->kind == COMPLAINT_DENIED && view == PATH_VIEW_ABSENT)
			box_report_unwritable(h->b, path);
		else
			hear_path(h, path, view, c->kind == COMPLAINT_DENIED);
	}
}

/* A program that PATH does not have either: the one that no option shows. */
static void hear_command(struct box *b, const char *name)
{
	for (const char *dirs = getenv("PATH"); dirs && *dirs; dirs += *dirs == ':') {
		size_t n = strcspn(dirs, ":");
		auto_free char *dir = strndup(dirs, n);
		auto_free char *file = dir && *dir == '/' ? path_join(dir, name) : NULL;

		if (file && access(file, X_OK) == 0)
			return;
		dirs += n;
	}
	if (!b->uncalled[0])
		snprintf(b->uncalled, sizeof(b->uncalled), "%s", name);
}

static void hear_absent(struct hearing *h, const struct complaint *c)
{
	if (c->word[0] == '/' || c->word[0] == '.')
		hear_file(h, c);
	else if (!h->limits_only && h->reported < REPORTED_MAX)
		h->reported += box_report_called(h->b, c->word);
}

/* A path of ward's own table, which was looked through there: it may be shown as a whole. */
static void hear_need(struct hearing *h, const char *path)
{
	if (!h->limits_only && path_view_find(&h->view, path, NULL) == PATH_VIEW_ABSENT &&
	    box_is_on_host(path) && !box_is_reported(h->b->result, path))
		box_report_mount(
			h->b->result, path, path,
			"the command's program reads it, and the sandbox does not have it");
}

/* ---- ssh ---- */

/* USER@HOST as one of the command's words has it: "git@host:path", "ssh://git@host/"; host "": the
 * first one. The word's part, or NULL. */
static char *find_login(char *const *argv, const char *host)
{
	for (; argv && *argv; argv++)
		for (const char *at = *argv; (at = strchr(at, '@')); at++) {
			const char *from = at;
			size_t n = strcspn(at + 1, ":/ '\"");

			if (*host ? strlen(host) != n || strncmp(at + 1, host, n) != 0 : n == 0)
				continue;
			while (from > *argv && !strchr("/ '\"", from[-1]))
				from--;
			return strndup(from, (size_t)(at - from) + 1 + n);
		}
	return NULL;
}

static void hear_login(struct hearing *h, const struct complaint *c)
{
	static const char why[] = "your keys and your ssh settings are not inside";
	struct box *b = h->b;
	struct result *r = b->result;
	const char *at = strchr(c->word, '@'), *host = at ? at + 1 : c->word;
	auto_free char *login = at ? strdup(c->word) : find_login(b->plan->argv, host);
	const char *named = login ? strchr(login, '@') : NULL;
	struct ward_event v;
	auto_buf what = { 0 }, name = { 0 }, remedy = { 0 };

	host = *host || !named ? host : named + 1;
	if (!*host || b->plan->spec->policy.cred_ssh.len)
		return;
	/* git's forges log everybody in as git */
	if (!login && b->plan->argv && strcmp(b->plan->argv[0], "git") == 0 &&
	    asprintf(&login, "git@%s", host) < 0)
		login = NULL;
	buf_printf(&what, "login to %s", host);
	buf_printf(&name, "name %s", host);
	v = event_make(EVENT_CREDENTIAL_SIGN, ACTION_DENY, "your ssh-agent");
	event_text(&v, FIELD_HOST, host);
	buf_printf(&remedy, "%s--ssh %s; it lets your ssh-agent sign for that host alone",
		   b->plan->spec->inner ? "--isolation native " : "",
		   login && text_is_plain(login) ? login : host);
	if (what.failed || name.failed || remedy.failed)
		return;
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(r->events, &v);
	for (size_t i = 0; i < r->denial_count; i++)
		if (r->denials[i].what && strcmp(r->denials[i].what, buf_text(&name)) == 0) {
			/* --allow would open another port, and is not what is missing */
			free(r->denials[i].remedy);
			r->denials[i].remedy = strdup(buf_text(&remedy));
			return;
		}
	result_deny(r, buf_text(&what), why, buf_text(&remedy));
}

/* ---- names and connections ---- */

/* The hosts of the URLs among the command's words: what an unnamed one may be. */
static void hear_urls(struct box *b)
{
	for (char *const *argv = b->plan->argv; argv && *argv; argv++)
		for (const char *at = *argv; (at = strstr(at, "://"));) {
			const char *from = at + 3;
			auto_free char *host = strndup(from, strcspn(from, ":/?#@'\" \n"));

			if (host && strchr(host, '.'))
				names_heard(host, b->result);
			at = from;
		}
}

/* A sandbox without a network whose lookups and connections end where ward does not see them, at
 * the kernel of an inner runtime. At the Landlock level no socket can be made, and ward reports
 * that. */
static void hear_network(struct hearing *h, const struct complaint *c)
{
	if (h->b->plan->net.on || h->b->plan->level == LEVEL_LANDLOCK || h->reached >= REPORTED_MAX)
		return;
	h->reached++;
	if (c->kind == COMPLAINT_ADDRESS)
		unreached_heard(c->word, h->b->result);
	else if (c->word[0])
		names_heard(c->word, h->b->result);
	else
		hear_urls(h->b);
	/* a datagram, say, which no call that ward sees announces */
	if (!c->word[0] && !h->b->result->denial_count)
		unreached_somewhere(h->b->result);
}

/* Some programs hang up without a word when they do not trust what the gateway shows them. */
static void hear_certificate(struct box *b)
{
	static const char inspected[] =
		"the program does not trust the sandbox's certificate authority, which signs where "
		"ward inspects requests; remedy: leave SSL_CERT_FILE, NODE_EXTRA_CA_CERTS and the "
		"like as they are set inside, or pass the host on uninspected (mode: splice)",
			  plain[] =
				  "ward inspects nothing here, so the program misses an authority "
				  "of its own: show its file with --ro FILE, and name it, for "
				  "instance with --env SSL_CERT_FILE=FILE";
	const char *words = b->plan->live->certs ? inspected : plain;

	if (!b->plan->net.on || b->result->denial_count)
		return;
	strv_add(&b->result->loud, words);
	strv_add(&b->result->notes, words);
}

static void hear_one(struct hearing *h, const struct complaint *c)
{
	switch (c->kind) {
	case COMPLAINT_ABSENT:
		hear_absent(h, c);
		break;
	case COMPLAINT_NEEDS:
		hear_need(h, c->word);
		break;
	case COMPLAINT_DENIED:
	case COMPLAINT_READ_ONLY:
		hear_file(h, c);
		break;
	case COMPLAINT_SSH:
		hear_login(h, c);
		break;
	case COMPLAINT_HOST:
	case COMPLAINT_ADDRESS:
		hear_network(h, c);
		break;
	case COMPLAINT_LOGIN:
		box_report_login(h->b, c);
		break;
	case COMPLAINT_LIBRARY:
		if (!h->limits_only)
			box_report_library(h->b, c->word);
		break;
	case COMPLAINT_COMMAND:
		if (!h->limits_only)
			hear_command(h->b, c->word);
		break;
	case COMPLAINT_CERTIFICATE:
		hear_certificate(h->b);
		break;
	case COMPLAINT_REPOSITORY:
		if (!h->limits_only)
			box_report_repository(h->b);
		break;
	case COMPLAINT_UNNAMED:
		h->b->unnamed = true;
		break;
	case COMPLAINT_SAYS:
		strv_add(&h->b->result->loud, c->advice);
		strv_add(&h->b->result->notes, c->advice);
		break;
	case COMPLAINT_MEMORY:
		report_limit(h->b, LIMIT_MEMORY, "the command reports that it ran out of memory");
		break;
	case COMPLAINT_PIDS:
		report_limit(
			h->b, LIMIT_PIDS,
			"the command reports that it could not start another process or thread");
		break;
	case COMPLAINT_OPEN_FILES:
		report_limit(h->b, LIMIT_OPEN_FILES,
			     "the command reports that it could not open more files");
		break;
	case COMPLAINT_DISK:
		report_limit(h->b, LIMIT_DISK, "the command reports that there was no more room");
		break;
	}
}

void box_hear(struct box *b)
{
	struct hearing h = { .b = b };
	const struct buf *said = &b->streams.tail.kept;
	struct complaint *found;

	if (!b->result->exit_code || b->limited || b->forwarded)
		return;
	if (b->result->exit_signal == SIGXFSZ || b->result->exit_code == 128 + SIGXFSZ)
		report_limit(b, LIMIT_DISK, "a file grew to the limit");
	found = said->len ? calloc(COMPLAINTS_MAX, sizeof(*found)) : NULL;
	if (!found)
		return;
	h.view = path_view_of(b->plan);
	h.limits_only = b->plan->image.root || b->plan->spec->observe ||
			(b->plan->argv && box_known_program(b->plan->argv[0]));
	for (size_t i = 0, n = complaint_read((const uint8_t *)said->data, said->len, found); i < n;
	     i++)
		hear_one(&h, &found[i]);
	free(found);
}
