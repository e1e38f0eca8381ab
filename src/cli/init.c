/*
 * ward init: a starter policy. In: a directory, and on a terminal the answers to three questions.
 * Out: ward.yaml in it, at most 15 lines that say only what differs from the defaults; with --full
 * the commented reference (init_full.c). The kind of project is read off the presence of marker
 * files (tables/projects.def); not a byte of them is read, no link is followed, and an existing
 * file is not replaced unless asked to: an agent may have written all of it. What was written is
 * then accepted as by ward trust.
 *
 * A policy file goes over a profile. So nothing is said about the network unless the user wants
 * packages to be downloaded, and then the agent's own hosts are named beside the registries: a
 * list without them would cut the agent off from its service.
 */
#include "cli/init.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/agent.h"
#include "cli/question.h"
#include "model/event.h"
#include "plan/profile.h"
#include "plan/project.h"
#include "policy/policy_rule.h"
#include "state/trust.h"

#define POLICY_NAME "ward.yaml"
#define TEMPORARY ".ward.yaml.new"

static const struct kind {
	char name[8];
	char markers[80]; /* separated by spaces */
	bool compiles;
	char caches[20], hosts[48];
} kinds[] = {
#define PROJECT(name, markers, compiles, caches, hosts) { name, markers, compiles, caches, hosts },
#include "projects.def"
};

static const struct {
	char name[20], hint[80];
} markers[] = {
#define MARKER(name, hint) { name, hint },
#include "projects.def"
};

static void project_clear(struct project *p)
{
	buf_free(&p->names);
	buf_free(&p->caches);
	buf_free(&p->hosts);
	strv_free(&p->hints);
}

/* -- looking */

static bool has_marker(int dir_fd, const char *names)
{
	struct stat st;
	char name[32];

	for (; *names; names += strcspn(names, " "), names += strspn(names, " ")) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(names, " "), names);
		if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

static void look(int dir_fd, struct project *p)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct kind *k = &kinds[i];

		if (!has_marker(dir_fd, k->markers))
			continue;
		buf_printf(&p->names, "%s%s", p->names.len ? " and " : "", k->name);
		if (*k->caches)
			buf_printf(&p->caches, "%s%s", p->caches.len ? ", " : "[", k->caches);
		if (*k->hosts)
			buf_printf(&p->hosts, "%s%s", p->hosts.len ? ", " : "", k->hosts);
		p->compiles |= k->compiles;
	}
	if (p->caches.len)
		buf_puts(&p->caches, "]");
	for (size_t i = 0; i < ARRAY_LEN(markers); i++)
		if (fstatat(dir_fd, markers[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			strv_add(&p->hints, markers[i].hint);
}

/* A project further up has a policy: in this directory the new one takes its place. */
static void look_above(const char *dir, struct project *p)
{
	auto_free char *here = realpath(dir, NULL), *project = NULL;
	struct ward_err ignored = { 0 };
	auto_buf note = { 0 };

	if (!here || project_find(here, &project, NULL, &ignored) < 0 || !project ||
	    strcmp(project, here) == 0)
		return;
	text_escape(&note, project);
	buf_puts(&note, " has a policy, which runs started here do not use any more; to keep it: "
			"remove this file, and change that one with ward policy add");
	strv_add(&p->hints, buf_text(&note));
}

/* -- asking */

/* The built-in agents that are installed, "claude, codex"; the first is what Enter means. */
static int list_installed(struct buf *out, struct ward_err *e)
{
	auto_strv names = { 0 };
	int r = profile_names(&names, e);

	for (size_t i = 0; i < names.len && r == 0; i++) {
		struct agent a;

		if (!agent_is_known(names.items[i]))
			continue;
		r = agent_open(names.items[i], &a, e);
		if (r < 0)
			break;
		if (a.file)
			buf_printf(out, "%s%s", out->len ? ", " : "", a.name);
		agent_close(&a);
	}
	return r;
}

static int ask_agent(struct project *p, struct ward_err *e)
{
	auto_buf installed = { 0 }, question = { 0 };
	char answer[sizeof(p->agent)];
	int r = list_installed(&installed, e);
	size_t first = strcspn(buf_text(&installed), ",");

	if (r < 0)
		return r;
	buf_printf(&question, "1. Which agent works here? (%s%sEnter: %.*s) ",
		   installed.len ? buf_text(&installed) : "", installed.len ? ", none; " : "",
		   installed.len ? (int)first : 4, installed.len ? buf_text(&installed) : "none");
	for (int i = 0; i < QUESTION_TRIES; i++) {
		auto_buf text = { 0 };
		auto_free char *where = NULL;

		r = question_line(buf_text(&question), answer, sizeof(answer), e);
		if (r < 0)
			return r;
		if (!*answer && installed.len)
			snprintf(answer, sizeof(answer), "%.*s", (int)first, buf_text(&installed));
		if (!*answer || strcmp(answer, "none") == 0)
			return 0;
		r = profile_read(answer, &text, &where, e);
		if (r == 0) {
			memcpy(p->agent, answer, sizeof(p->agent));
			return 0;
		}
		say_error(e, false, 0);
		*e = (struct ward_err){ 0 };
	}
	return question_fail(e);
}

/* Hosts as a person lists them, as entries of a list in a policy; or what is wrong with one. */
static int read_hosts(const char *text, struct buf *ret, struct ward_err *e)
{
	struct policy p = { 0 };
	int r = policy_defaults(&p, e);

	for (text += strspn(text, ", "); *text && r == 0; text += strspn(text, ", ")) {
		size_t n = strcspn(text, ", ");
		auto_free char *host = strndup(text, n);

		if (!host)
			r = ward_fail(e, ENOMEM, "out of memory");
		else
			r = policy_set(&p, "network.egress_allowlist", host, true, POLICY_CLI, e);
		buf_printf(ret, "%s\"%s\"", ret->len ? ", " : "", host ? host : "");
		text += n;
	}
	policy_clear(&p);
	return r;
}

static bool is_word(const char *answer, const char *letter, const char *word)
{
	return strcasecmp(answer, letter) == 0 || strcasecmp(answer, word) == 0;
}

static int ask_hosts(struct project *p, struct ward_err *e)
{
	auto_buf question = { 0 };
	char answer[400];

	buf_puts(&question, "2. Which hosts may it reach besides its own service? (");
	if (p->hosts.len)
		buf_printf(&question, "y: %s; ", buf_text(&p->hosts));
	buf_puts(&question, "or a list; Enter: none) ");
	for (int i = 0; i < QUESTION_TRIES; i++) {
		auto_buf hosts = { 0 };
		int r = question_line(buf_text(&question), answer, sizeof(answer), e);

		if (r < 0)
			return r;
		if (!*answer || is_word(answer, "n", "no") || is_word(answer, "none", "none"))
			return 0;
		p->packages = true;
		if (p->hosts.len && is_word(answer, "y", "yes"))
			return 0;
		if (read_hosts(answer, &hosts, e) == 0) {
			buf_free(&p->hosts);
			p->hosts = hosts;
			hosts = (struct buf){ 0 };
			return 0;
		}
		say_error(e, false, 0);
		*e = (struct ward_err){ 0 };
	}
	return question_fail(e);
}

static int ask_all(struct project *p, struct ward_err *e)
{
	int r = ask_agent(p, e);

	if (r == 0)
		r = ask_hosts(p, e);
	if (r < 0)
		return r;
	return question_yes("3. Hold its changes back until you review them (ward diff, ward "
			    "apply)? [y/N] ",
			    false, &p->review, e);
}

/* -- writing */

/* One rule of the agent's profile: its host where that is all it says. */
static int put_rule(const char *line, struct buf *out, struct ward_err *e)
{
	struct policy_rule rule;
	auto_buf plain = { 0 };
	int r = policy_rule_read(line, &rule, e);

	if (r < 0)
		return r;
	buf_printf(&plain, "{\"host\":\"%s\",\"ports\":[443]}", rule.host);
	if (strcmp(buf_text(&plain), line) != 0)
		buf_puts(out, line);
	else
		buf_printf(out, *rule.host == '*' ? "\"%s\"" : "%s", rule.host);
	return 0;
}

static int put_network(const struct project *p, struct buf *out, struct ward_err *e)
{
	struct agent a = { 0 };
	int r = *p->agent ? agent_open(p->agent, &a, e) : 0;

	if (r < 0)
		return r;
	buf_printf(out, "network:\n  mode: restricted\n");
	if (a.name && a.profile.net_egress.len)
		buf_printf(out, "  # the hosts of %s, and those of this project\n", a.name);
	buf_puts(out, "  egress_allowlist: [");
	for (size_t i = 0; a.name && i < a.profile.net_egress.len && r == 0; i++) {
		r = put_rule(a.profile.net_egress.items[i], out, e);
		buf_puts(out, i + 1 < a.profile.net_egress.len || p->hosts.len ? ", " : "");
	}
	buf_printf(out, "%s]\n", buf_text(&p->hosts));
	agent_close(&a);
	return r;
}

static int make_short(const struct project *p, struct buf *out, struct ward_err *e)
{
	const char *names = buf_text(&p->names);

	buf_printf(out,
		   "# What differs from ward's defaults for this %s%sproject. ward plan shows the "
		   "effect,\n# man ward.yaml every field, and ward init --full writes them all.\n"
		   "version: 1\nfilesystem:\n",
		   names, *names ? " " : "");
	if (p->review)
		buf_puts(out, "  mode: review\n");
	buf_puts(out, "  hide: " INIT_HIDDEN "\n");
	if (p->caches.len)
		buf_printf(out, "  caches: %s\n", buf_text(&p->caches));
	if (p->compiles)
		buf_puts(out, "process:\n  syscalls: build\n");
	return p->packages ? put_network(p, out, e) : 0;
}

/* Makes the file new, or in place of the old one when force is set. */
static int write_policy(int dir_fd, const struct buf *text, bool force, struct ward_err *e)
{
	const char *name = force ? TEMPORARY : POLICY_NAME;
	auto_fd fd = -1;
	int r;

	if (text->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST) {
		ward_fail(e, EEXIST, "%s already exists", name);
		return ward_remedy(e, "%s",
				   force ? "remove it" : "ward init --force overwrites it");
	}
	if (fd < 0)
		return ward_fail_errno(e, "cannot create %s", name);
	r = io_write_all(fd, text->data, text->len);
	if (r == 0 && force && renameat(dir_fd, name, dir_fd, POLICY_NAME) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(dir_fd, name, 0);
	errno = -r;
	return ward_fail_errno(e, "cannot write %s", POLICY_NAME);
}

/* Nobody shall answer three questions for nothing. */
static int check_absent(int dir_fd, bool force, struct ward_err *e)
{
	struct stat st;

	if (force || fstatat(dir_fd, POLICY_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	ward_fail(e, EEXIST, POLICY_NAME " already exists");
	return ward_remedy(e, "ward init --force overwrites it");
}

static int accept(const struct project *p, const char *dir, const struct buf *text,
		  struct ward_err *e)
{
	auto_free char *path = NULL;
	char hex[SHA256_HEX];

	if (!p->compiles && !p->caches.len && !p->packages)
		return 0; /* nothing in it is wider than the defaults */
	if (asprintf(&path, "%s/" POLICY_NAME, dir) < 0) {
		path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	/* of what was made here, not of what may lie there by now */
	sha256_hex(text->data, text->len, hex);
	return trust_add(hex, path, e);
}

static int init_directory(const struct options *o, const char *dir, struct project *p,
			  struct ward_err *e)
{
	auto_fd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_buf text = { 0 };
	int r;

	if (dir_fd < 0)
		return ward_fail_errno(e, "cannot open the directory %.300s", dir);
	r = check_absent(dir_fd, o->force, e);
	if (r < 0)
		return r;
	look(dir_fd, p);
	look_above(dir, p);
	if (o->full)
		init_full(p, &text);
	else if (!o->yes && !o->json && question_possible())
		r = ask_all(p, e);
	if (r == 0 && !o->full)
		r = make_short(p, &text, e);
	if (r == 0)
		r = write_policy(dir_fd, &text, o->force, e);
	return r < 0 ? r : accept(p, dir, &text, e);
}

static void put_done(const struct project *p, const char *dir, struct buf *out)
{
	buf_puts(out, "wrote ");
	text_escape(out, dir);
	buf_printf(out, "/" POLICY_NAME " for a %s%sproject; next: ", buf_text(&p->names),
		   p->names.len ? " " : "");
	if (agent_is_known(p->agent))
		buf_printf(out, "ward %s\n", p->agent);
	else if (*p->agent)
		buf_printf(out, "ward agent %s\n", p->agent);
	else
		buf_puts(out, "ward run -- CMD\n");
	for (size_t i = 0; i < p->hints.len; i++)
		buf_printf(out, "note: %s\n", p->hints.items[i]);
}

int verb_init(struct options *o)
{
	const char *dir = o->word_count ? o->words[0] : ".";
	struct ward_err e = { 0 };
	struct project p = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = init_directory(o, dir, &p, &e);

	if (r == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "file", POLICY_NAME);
		json_string(&j, "directory", dir);
		json_string(&j, "project", p.names.len ? p.names.data : NULL);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (r == 0) {
		put_done(&p, dir, &out);
	}
	project_clear(&p);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}
