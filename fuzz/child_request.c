/*
 * Fuzzes what a program inside asks of ward (process.children): words behind `ward run`,
 * `ward send` and `ward receive`, joined by line ends. Whatever is asked for, the child's policy is
 * no wider than its parent's.
 */
#include <assert.h>
#include <string.h>

#include "cli/children/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char document[] =
	"version: 1\n"
	"filesystem:\n"
	"  workspace: /w\n"
	"  hide: [\".env\", \"/a/*\"]\n"
	"  host_mounts: [{path: /w/out, mode: read_write}, /opt/x, {path: /w/a/b, at: /b}]\n"
	"network:\n"
	"  mode: restricted\n"
	"  egress_allowlist: [a.example, \"*.b.example:443\", \"10.0.0.0/8\","
	" {host: c.b.example, methods: [GET]}, {host: d.example, ask: true}]\n"
	"process: {children: 3, children_depth: 2}\n"
	"channels: [{name: c, from: [parent], to: [a], schema: \"{}\"}]\n"
	"resources: {memory_limit: 1Gi, pids_limit: 100, timeout_seconds: 60}\n";

static const struct parent *the_parent(void)
{
	static struct parent p = { .memory_bytes = UINT64_C(8) << 30 };
	struct policy_errors errors = { 0 };
	struct ward_err e;

	if (p.unsafe.len)
		return &p;
	assert(policy_defaults(&p.policy, &e) == 0);
	assert(policy_read(&p.policy, "parent", (const uint8_t *)document, sizeof(document) - 1,
			   POLICY_FILE, &errors) == 0);
	for (size_t i = 0; i < p.policy.fs_host_mounts.len; i++) {
		const struct policy_mount *m = &p.policy.fs_host_mounts.items[i];
		const char *why = child_mount_unsafe(&p.policy, m, m->path);

		strv_add(&p.unsafe, why ? why : "");
	}
	return &p;
}

static void check(const struct parent *parent, const struct policy *p)
{
	const struct policy *own = &parent->policy;

	assert(p->fs_mode == FS_MODE_READ_ONLY && strcmp(p->fs_workspace, own->fs_workspace) == 0);
	assert(p->res_memory <= own->res_memory && p->res_pids <= own->res_pids);
	assert(p->res_timeout <= own->res_timeout && p->res_disk <= own->res_disk);
	assert(!p->channels.len && !p->proc_nesting && !p->cred_grants.len &&
	       p->isolation.len == 1);
	assert(strcmp(p->isolation.items[0], "native") == 0);
	assert(!p->proc_children || p->proc_children_depth < own->proc_children_depth);
	assert(strv_has(&p->fs_hide, ".env") && strv_has(&p->fs_hide, "/a/*"));
	for (size_t i = 0; i < p->fs_host_mounts.len; i++) {
		const struct policy_mount *m = &p->fs_host_mounts.items[i];

		assert(strcmp(m->path, "/w/out") == 0 ||
		       (strcmp(m->path, "/opt/x") == 0 && !m->writable));
	}
	for (size_t i = 0; i < p->net_egress.len; i++)
		assert(strstr(p->net_egress.items[i], "example") ||
		       strstr(p->net_egress.items[i], "10.0.0.0/8"));
}

static void try_verb(const char *verb, const uint8_t *data, size_t n)
{
	struct command_said said = { .word_count = 2 };
	size_t begin = strlen("ward") + strlen(verb) + 2;
	char words[2048];
	struct child_request q;
	struct policy policy = { 0 };
	struct ward_err e = { 0 };

	if (n + begin + 1 > sizeof(words))
		return;
	memcpy(words, "ward", sizeof("ward"));
	memcpy(words + sizeof("ward"), verb, strlen(verb) + 1);
	memcpy(words + begin, data, n);
	words[begin + n] = '\n';
	said.words = words;
	said.words_len = begin + n + 1;
	for (size_t i = begin; i < said.words_len; i++)
		if (words[i] == '\n') {
			words[i] = '\0';
			said.word_count++;
		}
	if (child_request_read(&said, &q, &e) < 0) {
		assert(e.code && *e.why);
		return;
	}
	assert(q.verb == CHILD_RUN || q.name);
	assert(q.verb != CHILD_SEND || q.text);
	if (q.verb != CHILD_RUN)
		return;
	assert(q.word_count && q.command >= words && q.command < words + said.words_len);
	assert(!q.name || child_is_name(q.name));
	e = (struct ward_err){ 0 };
	if (child_narrow(the_parent(), &q, &policy, &e) == 0)
		check(the_parent(), &policy);
	else
		assert(e.code && *e.why);
	policy_clear(&policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const verbs[] = { "run", "send", "receive" };

	if (n && memchr(data, '\0', n))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		try_verb(verbs[i], data, n);
	return 0;
}
