/*
 * The policy that was learned, as a document. In: what a command needed, the user's own options.
 * Out: YAML with only what differs from the defaults. Everything that a sandbox could choose
 * (paths, names of hosts and programs) is quoted by policy_quote(), in comments too: it can neither
 * break out of its line nor become another field. Pure.
 */
#include "cli/learn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/quote.h"

#define PROGRAMS_SHOWN 24

void learn_policy_clear(struct learn_policy *p)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		free(p->mounts[i].path);
		free(p->mounts[i].at);
	}
	free(p->mounts);
	strv_free(&p->programs);
	strv_free(&p->toolchains);
	strv_free(&p->rules);
	*p = (struct learn_policy){ 0 };
}

static bool is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

bool learn_add_mount(struct learn_policy *p, const char *path, const char *at)
{
	struct learn_mount *grown, m = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < p->mount_count; i++)
		if (is_within(at ? at : path,
			      p->mounts[i].at ? p->mounts[i].at : p->mounts[i].path))
			return false;
	grown = reallocarray(p->mounts, p->mount_count + 1, sizeof(*grown));
	if (grown)
		p->mounts = grown;
	m.path = strdup(path);
	m.at = at && strcmp(at, path) != 0 ? strdup(at) : NULL;
	if (!grown || !m.path || (at && strcmp(at, path) != 0 && !m.at)) {
		free(m.path);
		free(m.at);
		return false;
	}
	/* what lies in the new one is given by it */
	for (size_t i = 0; i < p->mount_count; i++) {
		struct learn_mount *old = &p->mounts[i];

		if (is_within(old->at ? old->at : old->path, at ? at : path)) {
			free(old->path);
			free(old->at);
		} else {
			p->mounts[kept++] = *old;
		}
	}
	p->mounts[kept] = m;
	p->mount_count = kept + 1;
	return true;
}

bool learn_mount_text(const struct learn_mount *m, struct buf *out)
{
	bool fine;

	buf_puts(out, "{path: ");
	fine = policy_quote(out, m->path);
	if (m->at) {
		buf_puts(out, ", at: ");
		fine &= policy_quote(out, m->at);
	}
	buf_puts(out, "}");
	return fine;
}

bool learn_rule_text(const char *host, unsigned port, const char *mode, bool is_private,
		     struct buf *out)
{
	const char *by_port = port == 443 ? "tls" : port == 80 ? "http" : "tcp";
	bool fine;

	if (strcmp(mode, by_port) == 0 && !is_private) {
		bool brackets = strchr(host, ':') != NULL;
		auto_buf text = { 0 };

		buf_printf(&text, brackets ? "[%s]:%u" : "%s:%u", host, port);
		return policy_quote(out, buf_text(&text));
	}
	buf_puts(out, "{host: ");
	fine = policy_quote(out, host);
	buf_printf(out, ", ports: [%u], mode: %s%s}", port,
		   strcmp(mode, "tls") == 0 ? "splice" : mode, is_private ? ", private: true" : "");
	return fine;
}

static void put_comment(struct buf *out, const char *title, char *const *words, size_t count)
{
	buf_printf(out, "# %s", title);
	for (size_t i = 0; i < count; i++) {
		auto_buf word = { 0 };

		buf_puts(out, " ");
		if (policy_quote(&word, words[i]))
			buf_puts(out, buf_text(&word));
		else
			buf_puts(out, "(a name that is not UTF-8)");
	}
	buf_puts(out, "\n");
}

/* The user's own fields: options over the defaults, without the lists that are learned. */
static int user_fields(const struct options *o, struct policy *p, struct ward_err *e)
{
	int r = policy_defaults(p, e);

	for (size_t i = 0; r == 0 && i < o->field_count; i++)
		if (strcmp(o->fields[i].field, "network.egress_allowlist") != 0)
			r = policy_set(p, o->fields[i].field, o->fields[i].value,
				       o->fields[i].append, POLICY_CLI, e);
	return r;
}

struct made {
	const struct learn_policy *learned;
	const struct policy *user;
	struct buf *out;
	const char *group; /* whose head is written */
	bool fine;
};

static void put_field(struct made *m, const char *path, const char *text)
{
	const char *dot = strchr(path, '.');
	size_t n = dot ? (size_t)(dot - path) : 0;

	if (dot && (!m->group || strncmp(m->group, path, n + 1) != 0)) {
		buf_printf(m->out, "%.*s:\n", (int)n, path);
		m->group = path;
	}
	buf_printf(m->out, "%s%s: %s\n", dot ? "  " : "", dot ? dot + 1 : path, text);
}

static void put_list(struct made *m, const char *path, const struct strv *items)
{
	if (!items->len)
		return;
	put_field(m, path, "");
	m->out->len--; /* the space and the newline */
	m->out->len--;
	buf_puts(m->out, "\n");
	for (size_t i = 0; i < items->len; i++)
		buf_printf(m->out, "    - %s\n", items->items[i]);
}

static void put_mounts(struct made *m, const char *path)
{
	const struct policy_mounts *own = &m->user->fs_host_mounts;
	auto_strv items = { 0 };

	for (size_t i = 0; i < own->len; i++) {
		auto_buf text = { 0 };

		m->fine &= learn_mount_text(
			&(struct learn_mount){ own->items[i].path, own->items[i].at }, &text);
		if (own->items[i].writable) {
			text.len--;
			buf_puts(&text, ", mode: read_write}");
		}
		strv_add(&items, buf_text(&text));
	}
	for (size_t i = 0; i < m->learned->mount_count; i++) {
		auto_buf text = { 0 };

		m->fine &= learn_mount_text(&m->learned->mounts[i], &text);
		strv_add(&items, buf_text(&text));
	}
	put_list(m, path, &items);
}

/* Presets by name: they stay the same when a version in a directory's name does not. */
static void put_toolchains(struct made *m, const char *path)
{
	auto_buf text = { 0 };

	for (size_t i = 0; i < m->learned->toolchains.len; i++)
		buf_printf(&text, "%s%s", i ? ", " : "[", m->learned->toolchains.items[i]);
	buf_puts(&text, text.len ? "]" : "none");
	put_field(m, path, buf_text(&text));
}

/* What is learned stands in place of the user's own, or with it. True: it has written the field. */
static bool put_learned(struct made *m, enum policy_field f, const char *path)
{
	const struct learn_policy *l = m->learned;

	switch ((unsigned)f) {
	case POLICY_F_version:
		put_field(m, path, "1");
		return true;
	case POLICY_F_toolchains:
		if (m->user->origin[f].source != POLICY_DEFAULT)
			return false;
		put_toolchains(m, path);
		return true;
	case POLICY_F_fs_mode:
		if (m->user->origin[f].source != POLICY_DEFAULT)
			return false;
		put_field(m, path, l->writes ? "read_write" : "read_only");
		return true;
	case POLICY_F_fs_host_mounts:
		put_mounts(m, path);
		return true;
	case POLICY_F_fs_programs:
		if (!l->programs.len)
			return false;
		put_list(m, path, &l->programs);
		return true;
	case POLICY_F_net_mode:
		if (l->rules.len)
			put_field(m, path, "restricted");
		return l->rules.len || m->user->net_mode != NET_MODE_OPEN;
	case POLICY_F_net_egress:
		put_list(m, path, &l->rules);
		return true;
	case POLICY_F_proc_syscalls:
		if (!l->build)
			return false;
		put_field(m, path, "build");
		return true;
	default:
		return false;
	}
}

int learn_policy_text(const struct learn_policy *p, const struct options *o,
		      const struct strv *programs, struct buf *out, struct ward_err *e)
{
	struct policy user;
	struct made m = { .learned = p, .user = &user, .out = out, .fine = true };
	int r = user_fields(o, &user, e);

	if (r < 0)
		return r;
	buf_puts(out, "# What this command needed when ward learn ran it, and nothing else:\n");
	put_comment(out, "command:", o->words, o->word_count);
	put_comment(out, "programs it started:", programs->items,
		    programs->len < PROGRAMS_SHOWN ? programs->len : PROGRAMS_SHOWN);
	for (unsigned f = 0; f < POLICY_FIELDS; f++) {
		const char *path = policy_row((enum policy_field)f)->path;
		auto_free char *text = NULL;

		if (put_learned(&m, (enum policy_field)f, path) ||
		    user.origin[f].source == POLICY_DEFAULT)
			continue;
		text = policy_text(&user, (enum policy_field)f);
		if (text)
			put_field(&m, path, text);
	}
	policy_clear(&user);
	if (out->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return m.fine ? 0
		      : ward_fail(e, EILSEQ,
				  "a required path is not UTF-8: a policy file cannot name it");
}
