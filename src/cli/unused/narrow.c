/*
 * The file without what was not used. In: grants that were judged. Out: a new document, changed in
 * nothing else, for a person to look at and put in place. It is handed out only if it is valid and
 * allows nothing more than the old one, as the trust check and the check of growth see it.
 *
 * Some grants restrict others: of two rules for a host the closer one decides, a read-only mount
 * lies in a writable place, an allow list ends with its last entry. Those stay, with the reason.
 */
#include "cli/unused/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "policy/cut.h"
#include "policy/policy_edit.h"
#include "policy/policy_grant.h"
#include "policy/policy_rule.h"

static void keep(struct unused *u, struct unused_grant *g, const char *why)
{
	if (g->kept)
		return;
	g->kept = strdup(why);
	u->failed |= !g->kept;
}

/* -- rules */

static bool is_address(const char *host)
{
	return strchr(host, ':') || strchr(host, '/') ||
	       strspn(host, "0123456789.") == strlen(host);
}

static bool share_port(const struct policy_rule *a, const struct policy_rule *b)
{
	bool some = !a->n_ports || !b->n_ports;

	for (unsigned i = 0; i < a->n_ports; i++)
		for (unsigned k = 0; k < b->n_ports; k++)
			some |= a->ports[i] == b->ports[k];
	return some;
}

/* Whether a says no to something that b allows where both are for the same host. */
static bool restricts(const struct policy_rule *a, const struct policy_rule *b)
{
	bool touch = is_address(a->host) || is_address(b->host)
			     ? is_address(a->host) && is_address(b->host)
			     : grant_hosts_touch(a->host, b->host);
	bool limits = a->connections != POLICY_NONE || a->connection_rate != POLICY_NONE ||
		      a->receive != POLICY_NONE || a->send != POLICY_NONE ||
		      a->bandwidth != POLICY_NONE || a->request_rate != POLICY_NONE ||
		      a->spend != POLICY_NONE;

	return touch && share_port(a, b) &&
	       (a->inspect || a->http_len || a->ask || a->llm || a->waf != POLICY_WAF_OFF ||
		limits || (a->mode != b->mode && a->mode != POLICY_RULE_TCP));
}

/* Of rules for the same host that both go none has to stay; what stays may make others stay. */
static void keep_rules(struct unused *u)
{
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < u->count; i++) {
			struct unused_grant *g = &u->grants[i];
			struct policy_rule mine, other;
			struct ward_err ignored;

			if (g->kind != UNUSED_EGRESS || !unused_goes(u, g) ||
			    policy_rule_read(u->policy.net_egress.items[g->index], &mine,
					     &ignored) < 0)
				continue;
			for (size_t k = 0; k < u->count && !g->kept; k++)
				if (k != i && u->grants[k].kind == UNUSED_EGRESS &&
				    !unused_goes(u, &u->grants[k]) &&
				    policy_rule_read(u->policy.net_egress.items[u->grants[k].index],
						     &other, &ignored) == 0 &&
				    restricts(&mine, &other)) {
					keep(u, g,
					     "it restricts what another rule allows for its "
					     "host");
					again = true;
				}
		}
	}
}

/* A port of a rule that restricts, where another rule has that port, too. */
static void keep_ports(struct unused *u)
{
	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];
		struct policy_rule mine, other;
		struct ward_err ignored;

		if (g->kind != UNUSED_PORT || !unused_goes(u, g) ||
		    policy_rule_read(u->policy.net_egress.items[g->index], &mine, &ignored) < 0)
			continue;
		mine.n_ports = 1;
		mine.ports[0] = (uint16_t)g->port;
		for (size_t k = 0; k < u->policy.net_egress.len; k++)
			if (k != g->index &&
			    policy_rule_read(u->policy.net_egress.items[k], &other, &ignored) ==
				    0 &&
			    restricts(&mine, &other))
				keep(u, g, "it restricts what another rule allows for its host");
	}
}

/* -- files, programs, children */

static const char *workspace_of(const struct unused *u, char **made)
{
	const char *said = u->policy.fs_workspace;
	auto_free char *dir = strndup(u->path, (size_t)(strrchr(u->path, '/') - u->path) + 1);

	*made = dir && said ? path_join(dir, said) : NULL;
	return *made;
}

static void keep_mounts(struct unused *u)
{
	auto_free char *made = NULL;
	const char *workspace = workspace_of(u, &made);

	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];
		const struct policy_mount *m;

		if (g->kind != UNUSED_MOUNT || !unused_goes(u, g) || !g->text)
			continue;
		m = &u->policy.fs_host_mounts.items[g->index];
		if (!m->writable && (!workspace || path_is_beneath(g->text, workspace)))
			keep(u, g, "it keeps a part of the workspace read-only");
		for (size_t k = 0; k < u->count; k++)
			if (k != i && u->grants[k].kind == UNUSED_MOUNT && u->grants[k].text &&
			    path_is_beneath(g->text, u->grants[k].text))
				keep(u, g, "it covers a part of another mount");
	}
}

static void keep_last(struct unused *u, enum unused_kind kind, const char *why)
{
	struct unused_grant *first = NULL;

	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];

		if (g->kind != kind)
			continue;
		if (!unused_goes(u, g))
			return;
		first = first ? first : g;
	}
	if (first)
		keep(u, first, why);
}

static void keep_children(struct unused *u)
{
	bool channels = false;

	for (size_t i = 0; i < u->count; i++)
		channels |= u->grants[i].kind == UNUSED_CHANNEL && !unused_goes(u, &u->grants[i]);
	for (size_t i = 0; i < u->count; i++)
		if (u->grants[i].kind == UNUSED_CHILDREN && channels)
			keep(u, &u->grants[i], "channels need it");
}

/* A list of methods that loses all would allow every method: one that was called stays, or none
 * was called through it. */
static void keep_methods(struct unused *u)
{
	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];
		bool stays = false;

		if (g->kind != UNUSED_METHOD && g->kind != UNUSED_VERB && g->kind != UNUSED_PORT &&
		    !(g->kind == UNUSED_HOST && !u->is_tools))
			continue;
		for (size_t k = 0; k < u->count; k++)
			stays |= u->grants[k].kind == g->kind && u->grants[k].whole == g->whole &&
				 !unused_goes(u, &u->grants[k]);
		if (!stays)
			keep(u, g, "none of its list is on record");
	}
}

void unused_keep(struct unused *u)
{
	keep_methods(u);
	if (u->is_tools)
		return;
	keep_rules(u);
	keep_ports(u);
	keep_mounts(u);
	keep_last(u, UNUSED_COMMAND, "without an entry every program could run");
	keep_children(u);
}

/* -- the document */

/* What stands for itself in the text, and what holds of it go with it. */
static void gather(struct unused *u, struct strv *parts)
{
	for (size_t i = 0; i < u->count; i++) {
		const struct unused_grant *g = &u->grants[i];

		if (!g->way || g->kind == UNUSED_NETWORK)
			continue;
		/* who holds a tool that goes does not */
		if (unused_goes(u, g) || (g->kind == UNUSED_HOLDING && g->whole != UNUSED_WHOLE &&
					  unused_goes(u, &u->grants[g->whole])))
			strv_add(parts, g->way);
	}
}

static bool none_stays(const struct unused *u, enum unused_kind kind)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->grants[i].kind == kind &&
		    (!u->grants[i].way || !unused_goes(u, &u->grants[i])))
			return false;
	return true;
}

static int set_field(struct unused *u, const char *field, const char *value, struct ward_err *e)
{
	auto_buf next = { 0 };
	int r = policy_edit(u->file, (const uint8_t *)buf_text(&u->narrowed), u->narrowed.len,
			    field, value, &next, e);

	if (r < 0)
		return r;
	buf_free(&u->narrowed);
	u->narrowed = next;
	next = (struct buf){ 0 };
	return 0;
}

/* What is not taken out but said. */
static int set_fields(struct unused *u, struct ward_err *e)
{
	bool silent = u->policy.net_mode != NET_MODE_NONE && none_stays(u, UNUSED_NETWORK) &&
		      none_stays(u, UNUSED_EGRESS) && none_stays(u, UNUSED_SERVICE) &&
		      none_stays(u, UNUSED_INGRESS) && unused_node(u, "network/mode");
	int r = 0;

	for (size_t i = 0; i < u->count && r == 0; i++)
		if (u->grants[i].kind == UNUSED_CHANGES && unused_goes(u, &u->grants[i]))
			r = set_field(u, "filesystem.mode", "read_only", e);
	/* nothing was reached at all */
	if (r == 0 && silent && u->records[0].lost == 0)
		r = set_field(u, "network.mode", "none", e);
	return r;
}

/* Lists that name what is allowed, in a rule or grant. */
static bool is_list_of_allowed(const char *key)
{
	static const char *const keys[] = { "ports", "methods", "hosts" };

	for (size_t i = 0; key && i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether new says what old does, with fewer entries in such lists; an empty one may mean all. */
static bool is_part(const struct node *old, const struct node *new)
{
	const struct node *x = old->first;

	if (old->kind != new->kind || !same_text(old->key, new->key) ||
	    !same_text(old->text, new->text) ||
	    (new->kind == NODE_LIST && old->first && !new->first))
		return false;
	for (const struct node *y = new->first; y; y = y->next) {
		while (x && is_list_of_allowed(new->key) && !same_text(x->text, y->text))
			x = x->next;
		if (!x || !is_part(x, y))
			return false;
		x = x->next;
	}
	return !x || is_list_of_allowed(new->key);
}

static bool is_part_of_line(const char *old, const char *new)
{
	struct ward_err ignored = { 0 };
	struct reader r = { .name = "", .e = &ignored };
	auto_node x = json_read(&r, (const uint8_t *)old, strlen(old));
	auto_node y = json_read(&r, (const uint8_t *)new, strlen(new));

	return x && y && !r.count && is_part(x, y);
}

/* Entries that are a part of an old one count as that one in the comparison of the whole. */
static int widen_to_old(const struct strv *old, struct strv *new)
{
	for (size_t i = 0; i < new->len; i++)
		for (size_t k = 0; k < old->len && !strv_has(old, new->items[i]); k++)
			if (is_part_of_line(old->items[k], new->items[i])) {
				char *copy = strdup(old->items[k]);

				if (!copy)
					return -ENOMEM;
				free(new->items[i]);
				new->items[i] = copy;
			}
	return 0;
}

static int check_policy_again(struct unused *u, struct strv *wider, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	struct policy old = { 0 }, new = { 0 };
	int r = policy_defaults(&old, e);

	if (r == 0)
		r = policy_defaults(&new, e);
	if (r == 0 && (policy_read(&old, u->file, (const uint8_t *)buf_text(&u->bytes),
				   u->bytes.len, POLICY_FILE, &errors) < 0 ||
		       policy_read(&new, u->file, (const uint8_t *)buf_text(&u->narrowed),
				   u->narrowed.len, POLICY_FILE, &errors) < 0))
		r = ward_fail(e, EINVAL, "%.500s",
			      errors.lines.len ? errors.lines.items[0] : "it cannot be read");
	if (r == 0 && (widen_to_old(&old.net_egress, &new.net_egress) < 0 ||
		       widen_to_old(&old.cred_grants, &new.cred_grants) < 0 ||
		       policy_compare(&old, &new, wider) < 0))
		r = ward_fail(e, ENOMEM, "out of memory");
	strv_free(&errors.lines);
	policy_clear(&old);
	policy_clear(&new);
	return r;
}

static int check_tools_again(struct unused *u, struct strv *wider, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	struct check_findings f = { 0 };
	struct tools new;
	int r = tools_read(&new, u->file, (const uint8_t *)buf_text(&u->narrowed), u->narrowed.len,
			   &errors);

	if (r < 0)
		r = ward_fail(e, EINVAL, "%.500s",
			      errors.lines.len ? errors.lines.items[0] : "it cannot be read");
	else
		check_growth(&u->source.t, &new, u->source.workspace, u->source.home, NULL, &f);
	for (size_t i = 0; i < f.len; i++)
		if (f.items[i].rule == CHECK_GREW)
			strv_add(wider, f.items[i].message);
	check_free(&f);
	tools_free(&new);
	strv_free(&errors.lines);
	return r;
}

int unused_narrow(struct unused *u, struct ward_err *e)
{
	struct ward_err why = { 0 };
	auto_strv parts = { 0 }, wider = { 0 };
	int r;

	gather(u, &parts);
	if (parts.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = document_cut(u->file, (const uint8_t *)buf_text(&u->bytes), u->bytes.len, &parts,
			 &u->narrowed, &why);
	if (r == 0 && !u->is_tools)
		r = set_fields(u, &why);
	if (r == 0 && u->is_tools)
		r = check_tools_again(u, &wider, &why);
	else if (r == 0)
		r = check_policy_again(u, &wider, &why);
	if (r == 0 && wider.len)
		r = ward_fail(&why, EPERM, "without them it would allow more: %.400s",
			      wider.items[0]);
	if (r < 0) {
		strv_addf(&u->notes, "there is no narrowed file: %s; change it by hand", why.why);
		buf_free(&u->narrowed);
	} else if (u->narrowed.len == u->bytes.len &&
		   memcmp(buf_text(&u->narrowed), buf_text(&u->bytes), u->bytes.len) == 0) {
		buf_free(&u->narrowed);
	}
	return r == -ENOMEM ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int unused_write(const struct unused *u, const char *file, struct ward_err *e)
{
	auto_fd fd = -1;
	int r;

	if (!u->narrowed.len)
		return ward_fail(
			e, ENODATA, "--write %.200s: there is nothing to write: %.300s", file,
			u->notes.len ? u->notes.items[u->notes.len - 1] : "every grant stays");
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0) {
		ward_fail_errno(e, "cannot make %.300s", file);
		return e->code == EEXIST ? ward_remedy(e, "name a file that does not exist; look "
							  "at it, then put it in place")
					 : -e->code;
	}
	r = io_write_all(fd, buf_text(&u->narrowed), u->narrowed.len);
	if (r < 0) {
		ward_fail(e, -r, "cannot write %.300s: %s", file, strerror(-r));
		unlink(file);
	}
	return r;
}
