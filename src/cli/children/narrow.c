/*
 * The policy of a child. In: the parent's policy, and what a program inside asked for. Out: a
 * policy that is narrower in every field, or why there is none.
 *
 * It begins with the parent's policy without everything that a grant is (network, credentials,
 * writable files, questions to a person); what was asked for is added; what no option names is
 * limited to an equal share. Then policy_field_widens(), by which options on top of a policy file
 * are judged as well, has to find no field wider. Two fields have a judgement of their own: of an
 * egress rule each of the parent's rules that could decide about its hosts must allow it, and
 * filesystem.home may become private.
 *
 * The workspace is read-only in every child. What is writable is a host mount of the parent's, the
 * same directory at the same place, and only one that nothing inside can put something else in
 * place of: it is a mount point there, so it can be neither moved nor removed, and no directory
 * above it can be moved.
 */
#include "cli/children/narrow.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "policy/policy_grant.h"
#include "policy/policy_rule.h"
#include "tools/scope.h"

static const struct {
	const char *field, *value;
} taken_away[] = {
	{ "filesystem.mode", "read_only" },
	{ "filesystem.host_mounts", "[]" },
	{ "filesystem.ask", "[]" },
	{ "filesystem.caches", "[]" },
	{ "filesystem.home", "private" },
	{ "network.mode", "none" },
	{ "network.egress_allowlist", "[]" },
	{ "network.ingress", "deny_all" },
	{ "network.host_services", "[]" },
	{ "process.git_identity", "false" },
	{ "process.children", "0" },
	{ "process.children_depth", "1" },
	{ "resources.gpus", "none" },
	{ "credentials.mode", "none" },
	{ "credentials.grants", "[]" },
	{ "credentials.ssh", "[]" },
	{ "credentials.gpg", "[]" },
	{ "approvals.mode", "deny" },
	{ "channels", "[]" },
};

/* What --set may name: fields of which one direction is narrower. */
static const char *const settable[] = {
	"filesystem.protect",     "process.children",       "process.children_depth",
	"process.syscalls",       "resources.cpu_limit",    "resources.disk_limit",
	"resources.inode_limit",  "resources.memory_limit", "resources.open_files",
	"resources.output_limit", "resources.pids_limit",   "resources.timeout_seconds",
};

#define DISK_SHARES 64 /* what was written stays counted: so many children may write one share */

/* Limits of which children have equal shares, and the least that a sandbox starts with. */
static const struct {
	enum policy_field field;
	bool lasting;
	uint64_t least;
} shared[] = {
	{ POLICY_F_res_memory, false, 4u << 20 }, { POLICY_F_res_pids, false, 2 },
	{ POLICY_F_res_cpu, false, 10 },          { POLICY_F_res_disk, true, 64u << 10 },
	{ POLICY_F_res_inodes, true, 16 },
};

struct cut {
	const struct parent *parent;
	struct policy *p;
	struct ward_err *e;
};

uint64_t child_limit(uint64_t value, uint64_t memory_bytes)
{
	if (value == POLICY_NONE || !(value & POLICY_PERCENT))
		return value;
	return (uint64_t)((unsigned __int128)memory_bytes * (value & ~POLICY_PERCENT) / 100);
}

static uint64_t *limit_of(struct policy *p, enum policy_field field)
{
	switch ((unsigned)field) {
	case POLICY_F_res_memory:
		return &p->res_memory;
	case POLICY_F_res_pids:
		return &p->res_pids;
	case POLICY_F_res_cpu:
		return &p->res_cpu;
	case POLICY_F_res_disk:
		return &p->res_disk;
	default:
		return &p->res_inodes;
	}
}

/* -- files */

const char *child_mount_unsafe(const struct policy *parent, const struct policy_mount *m,
			       const char *real)
{
	const char *below = NULL;

	if (strcmp(real, m->path) != 0)
		return "its path in the policy leads through a link";
	for (size_t i = 0; i < parent->fs_host_mounts.len; i++) {
		const struct policy_mount *other = &parent->fs_host_mounts.items[i];

		if (other->writable && strcmp(other->path, m->path) != 0 &&
		    path_is_beneath(m->path, other->path))
			return "it lies in another writable mount, where it can be moved";
	}
	if (!path_is_beneath(m->path, parent->fs_workspace))
		return NULL;
	below = m->path + strlen(parent->fs_workspace);
	below += *below == '/';
	if (m->at)
		return "it lies in the workspace, and is mounted somewhere else";
	if (!*below)
		return "it is the workspace";
	if (parent->fs_mode != FS_MODE_READ_ONLY && strchr(below, '/'))
		return "it lies in a directory of the workspace, which can be moved";
	return NULL;
}

/* What a person inside would call it: its path there, or one below the workspace. */
static bool is_named(const struct policy *parent, const struct policy_mount *m, const char *value)
{
	auto_free char *full =
		*value == '/' ? strdup(value) : path_join(parent->fs_workspace, value);
	auto_free char *clean = full ? path_clean(full) : NULL;

	return clean && strcmp(clean, m->at ? m->at : m->path) == 0;
}

static int give_mount(struct cut *c, const struct child_option *o)
{
	const struct policy_mounts *mounts = &c->parent->policy.fs_host_mounts;
	struct policy_mounts *list = &c->p->fs_host_mounts;
	auto_buf shown = { 0 };

	text_escape(&shown, o->value);
	for (size_t i = 0; i < mounts->len; i++) {
		const struct policy_mount *m = &mounts->items[i];
		struct policy_mount *grown;

		if (!is_named(&c->parent->policy, m, o->value))
			continue;
		if (*c->parent->unsafe.items[i])
			return ward_fail(c->e, EACCES, "%s %.200s: no child may have it: %s",
					 o->name, buf_text(&shown), c->parent->unsafe.items[i]);
		if (o->kind == CHILD_WRITE && !m->writable)
			return ward_fail(c->e, EACCES, "%s %.200s: it is read-only in the parent",
					 o->name, buf_text(&shown));
		grown = reallocarray(list->items, list->len + 1, sizeof(*grown));
		if (!grown)
			return ward_fail(c->e, ENOMEM, "out of memory");
		list->items = grown;
		grown[list->len] = (struct policy_mount){ .path = strdup(m->path),
							  .at = m->at ? strdup(m->at) : NULL,
							  .writable = o->kind == CHILD_WRITE };
		list->len++;
		return grown[list->len - 1].path && (!m->at || grown[list->len - 1].at)
			       ? 0
			       : ward_fail(c->e, ENOMEM, "out of memory");
	}
	ward_fail(c->e, EACCES, "%s %.200s: the parent has no such mount", o->name,
		  buf_text(&shown));
	return ward_remedy(c->e, "what children may write, the parent's policy lists in "
				 "filesystem.host_mounts; the workspace is there read-only");
}

/* -- the network */

static bool ports_meet(const struct policy_rule *a, const struct policy_rule *b)
{
	for (unsigned i = 0; i < a->n_ports; i++)
		for (unsigned k = 0; k < b->n_ports; k++)
			if (a->ports[i] == b->ports[k])
				return true;
	return !a->n_ports || !b->n_ports;
}

/* Whether every rule of the parent's that could decide about the hosts of this one allows it, and
 * there is one. */
static bool is_covered(const struct policy *parent, const char *text, struct ward_err *e)
{
	struct policy_rule own, other;
	bool some = false;

	if (policy_rule_read(text, &own, e) < 0)
		return false;
	if (strspn(own.host, "0123456789.") == strcspn(own.host, "/") || strchr(own.host, ':'))
		return strv_has(&parent->net_egress, text); /* blocks are not compared */
	for (size_t i = 0; i < parent->net_egress.len; i++) {
		const char *item = parent->net_egress.items[i];

		if (policy_rule_read(item, &other, e) < 0)
			return false;
		if (!ports_meet(&own, &other) || (!grant_host_covers(other.host, own.host) &&
						  !grant_host_covers(own.host, other.host)))
			continue;
		if (!scope_rule_covers(item, text))
			return false;
		some = true;
	}
	return some || (parent->net_mode == NET_MODE_OPEN && !own.private);
}

/* What the parent's network is counted by is counted once, by its own gateway. */
static bool counts_network(const struct policy *p)
{
	return p->net_connections != POLICY_NONE || p->net_connection_rate != POLICY_NONE ||
	       p->net_receive != POLICY_NONE || p->net_send != POLICY_NONE ||
	       p->net_bandwidth != POLICY_NONE || p->net_request_rate != POLICY_NONE ||
	       p->net_spend != POLICY_NONE || p->net_record || p->net_replay ||
	       p->net_upstream_proxy;
}

static int give_rule(struct cut *c, const struct child_option *o)
{
	const struct policy *parent = &c->parent->policy;
	auto_buf shown = { 0 };
	int r;

	text_escape(&shown, o->value);
	if (parent->net_mode == NET_MODE_NONE)
		return ward_fail(c->e, EACCES, "--allow %.200s: the parent has no network",
				 buf_text(&shown));
	if (counts_network(parent))
		return ward_fail(c->e, EACCES,
				 "--allow %.200s: the parent's network has limits, a proxy or a "
				 "recording, which a child cannot share",
				 buf_text(&shown));
	r = policy_set(c->p, "network.mode", "restricted", false, POLICY_CLI, c->e);
	if (r == 0)
		r = policy_set(c->p, o->field, o->value, true, POLICY_CLI, c->e);
	if (r < 0)
		return ward_wrap(c->e, "--allow");
	if (is_covered(parent, c->p->net_egress.items[c->p->net_egress.len - 1], c->e))
		return 0;
	*c->e = (struct ward_err){ 0 };
	return ward_fail(c->e, EACCES, "--allow %.200s: the parent's rules do not allow all of it",
			 buf_text(&shown));
}

/* -- the rest */

static int set_pair(struct cut *c, const struct child_option *o)
{
	const char *sign = strchr(o->value, '=');
	auto_free char *field = sign ? strndup(o->value, (size_t)(sign - o->value)) : NULL;
	auto_buf shown = { 0 };

	text_escape(&shown, o->value);
	if (!field)
		return ward_fail(c->e, EINVAL, "--set %.200s: expected FIELD=VALUE",
				 buf_text(&shown));
	for (size_t i = 0; i < ARRAY_LEN(settable); i++)
		if (strcmp(settable[i], field) == 0)
			return policy_set(c->p, field, sign + 1, false, POLICY_CLI, c->e);
	return ward_fail(c->e, EACCES, "--set %.200s: a child cannot choose this field",
			 buf_text(&shown));
}

static int apply(struct cut *c, const struct child_option *o)
{
	int r;

	switch (o->kind) {
	case CHILD_READ:
	case CHILD_WRITE:
		return give_mount(c, o);
	case CHILD_RULE:
		return give_rule(c, o);
	case CHILD_PAIR:
		return set_pair(c, o);
	case CHILD_FIELD:
	case CHILD_APPEND:
		r = policy_set(c->p, o->field, o->value, o->kind == CHILD_APPEND, POLICY_CLI, c->e);
		return r < 0 ? ward_wrap(c->e, "%s", o->name) : 0;
	case CHILD_CWD:
	case CHILD_NAME:
		break;
	}
	return 0;
}

/* What no option has set is an equal share of the parent's. */
static void share_limits(struct cut *c)
{
	const struct policy *parent = &c->parent->policy;

	for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
		uint64_t *limit = limit_of(c->p, shared[i].field);
		uint64_t all = child_limit(*limit, c->parent->memory_bytes);

		if (c->p->origin[shared[i].field].source == POLICY_CLI || all == POLICY_NONE)
			continue;
		*limit = all / (shared[i].lasting ? DISK_SHARES : parent->proc_children);
		if (*limit < shared[i].least)
			*limit = shared[i].least;
	}
}

/* A generation has fewer below it than the one above. */
static int check_depth(const struct cut *c)
{
	const struct policy *parent = &c->parent->policy;

	if (!c->p->proc_children)
		return 0;
	if (parent->proc_children_depth < 2)
		return ward_fail(c->e, EACCES,
				 "process.children: children of children are not allowed "
				 "(process.children_depth: 1)");
	if (c->p->proc_children_depth >= parent->proc_children_depth)
		return ward_fail(c->e, EACCES,
				 "process.children_depth: a child's must be smaller than its "
				 "parent's");
	return 0;
}

/* Every field, wherever it was set. */
static int prove(const struct cut *c)
{
	const struct policy *parent = &c->parent->policy;

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		enum policy_field field = (enum policy_field)i;
		auto_free char *old = NULL, *new = NULL;

		if (field == POLICY_F_net_egress || field == POLICY_F_fs_home ||
		    !policy_field_widens(parent, c->p, field, c->parent->memory_bytes))
			continue;
		old = policy_text(parent, field);
		new = policy_text(c->p, field);
		ward_fail(c->e, EACCES,
			  "%s: a child cannot have more than its parent: %.150s, not "
			  "%.150s",
			  policy_row(field)->path, old ? old : "?", new ? new : "?");
		return -EACCES;
	}
	return 0;
}

int child_narrow(const struct parent *parent, const struct child_request *q, struct policy *ret,
		 struct ward_err *e)
{
	struct cut c = { parent, ret, e };
	int r;

	*ret = (struct policy){ 0 };
	r = policy_copy(ret, &parent->policy, e);
	for (size_t i = 0; i < POLICY_FIELDS; i++)
		ret->origin[i].source = POLICY_FILE;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(taken_away); i++)
		r = policy_set(ret, taken_away[i].field, taken_away[i].value, false, POLICY_FILE,
			       e);
	for (size_t i = 0; r == 0 && i < q->option_count; i++)
		r = apply(&c, &q->options[i]);
	if (r == 0)
		share_limits(&c);
	if (r == 0)
		r = check_depth(&c);
	return r < 0 ? r : prove(&c);
}
