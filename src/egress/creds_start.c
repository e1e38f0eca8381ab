/*
 * Fetching the secrets of a run. In: a plan that will be started. Out: ward-secrets running with
 * the secrets, and its placeholders in the environment inside; ward-ssh-agent running, its socket,
 * known_hosts and gpg in the plan's mounts; or why a secret or key cannot be had. Runs
 * in the supervisor, after the plan was checked and before the sandbox starts.
 */
#include "egress/creds_start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/syscall.h>

#include "egress/secrets.h"
#include "egress/ssh.h"
#include "host/program.h"
#include "plan/etc_cache.h"
#include "plan/plan_root.h"
#include "plan/plan_tape.h"

/* The host's paths that exist inside, and the words that the command will see. */
static int collect(const struct plan *p, struct strv *seen, struct strv *words, struct ward_err *e)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && p->mounts[i].from_policy)
			strv_add(seen, p->mounts[i].source);
	strv_add(seen, p->workspace);
	for (size_t i = 0; i < p->env.len; i++)
		strv_add(words, p->env.items[i]);
	for (char *const *word = p->spec->argv; word && *word; word++)
		strv_add(words, *word);
	return seen->failed || words->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether there is something to fetch: in a replay no server is there that a secret could go to. */
static bool wants_secrets(const struct plan *p)
{
	const struct policy *policy = &p->spec->policy;

	return p->spec->starts && policy->cred_grants.len && policy->cred_mode != CRED_MODE_NONE &&
	       !(p->live->tape && p->live->tape->replay);
}

/* -- ssh */

static struct plan_mount *find_mount(struct plan *p, const char *target)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (strcmp(p->mounts[i].target, target) == 0)
			return &p->mounts[i];
	return NULL;
}

/* Texts of mounts live in the plan. */
static int set_text(struct plan *p, struct plan_mount *m, const char *text, struct ward_err *e)
{
	strv_add(&p->strings, text);
	if (p->strings.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->source = p->strings.items[p->strings.len - 1];
	return 0;
}

/* git signs with that key unless a repository says otherwise. */
static int sign_commits(struct plan *p, const char *gpg, const char *key, struct ward_err *e)
{
	struct plan_mount *m = find_mount(p, ETC_CACHE_GIT);
	auto_buf text = { 0 };

	m = m ? m : find_mount(p, "/etc/gitconfig");
	if (!*key || !m || m->kind != MOUNT_FILE)
		return 0;
	buf_printf(&text,
		   "%s[gpg]\n\t%s\n[user]\n\tsigningKey = \"%s\"\n"
		   "[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n",
		   m->source, gpg, key);
	return text.failed ? ward_fail(e, ENOMEM, "out of memory")
			   : set_text(p, m, buf_text(&text), e);
}

/* What the plan has no path for yet. */
static int set_file(struct plan *p, struct plan_mount *m, const char *path, struct ward_err *e)
{
	int r = set_text(p, m, path, e);

	/* as root the child that builds the sandbox has no right to the path */
	if (r < 0 || p->ids.mode == IDS_OWN)
		return r;
	m->tree_fd = (int)syscall(SYS_open_tree, AT_FDCWD, path,
				  AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return m->tree_fd < 0 ? ward_fail_errno(e, "cannot mount %s", path) : 0;
}

/* The program that git takes for gpg, and the public keys beside the agent's socket. */
static int show_gpg(struct plan *p, const char *socket_path, struct ward_err *e)
{
	struct plan_mount *gpg = find_mount(p, PLAN_GPG), *keys = find_mount(p, PLAN_GPG_KEYS);
	auto_free char *program = NULL;
	auto_buf keys_path = { 0 };
	int r;

	if (!gpg || !keys)
		return 0;
	buf_printf(&keys_path, "%.*s/gpg_keys", (int)(strrchr(socket_path, '/') - socket_path),
		   socket_path);
	if (keys_path.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = program_path("ward-gpg", &program, e);
	if (r == 0)
		r = set_file(p, gpg, program, e);
	if (r == 0)
		r = set_file(p, keys, buf_text(&keys_path), e);
	return r < 0 ? r
		     : sign_commits(p, "program = " PLAN_GPG, p->spec->policy.cred_gpg.items[0], e);
}

static int start_ssh(struct plan *p, struct ward_err *e)
{
	struct plan_mount *socket = find_mount(p, PLAN_SSH_SOCKET),
			  *hosts = find_mount(p, PLAN_SSH_KNOWN);
	auto_free char *path = NULL, *known = NULL, *signs = NULL;
	auto_buf key = { 0 };
	int r;

	if (!p->spec->starts || !socket)
		return 0;
	r = ssh_start(&p->spec->policy, &p->live->ssh, &path, &known, &signs, e);
	if (r == 0)
		r = set_file(p, socket, path, e);
	if (r == 0 && hosts)
		r = set_text(p, hosts, known, e);
	if (r == 0 && *signs) {
		buf_printf(&key, "key::%s", signs);
		r = key.failed ? ward_fail(e, ENOMEM, "out of memory")
			       : sign_commits(p, "format = ssh", buf_text(&key), e);
	}
	return r < 0 ? r : show_gpg(p, path, e);
}

static int start_secrets(struct plan *p, struct ward_err *e)
{
	auto_strv seen = { 0 }, words = { 0 }, shown = { 0 };
	int r;

	if (!wants_secrets(p))
		return 0;
	r = collect(p, &seen, &words, e);
	if (r == 0)
		r = secrets_start(&p->spec->policy, &seen, &words, &p->live->secrets, &shown, e);
	for (size_t i = 0; r == 0 && i < shown.len; i++) {
		const char *equals = strchr(shown.items[i], '=');

		plan_set_env(p, shown.items[i], (size_t)(equals - shown.items[i]), equals + 1);
	}
	return r < 0 ? r : p->env.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int creds_start(struct plan *p, struct ward_err *e)
{
	int r = start_ssh(p, e);

	return r < 0 ? r : start_secrets(p, e);
}

void creds_end(struct plan *p)
{
	secrets_end(p->live->secrets);
	p->live->secrets = NULL;
	ssh_end(p->live->ssh);
	p->live->ssh = NULL;
}
