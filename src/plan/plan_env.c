/*
 * The environment inside: an allow-list. In: the policy's names, the caller's environment. Out:
 * NAME=VALUE lines. Of PATH only directories that exist inside are kept, in the caller's order,
 * with the system's behind them; a TERM that nothing inside knows becomes one that it does.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "plan/certs.h"
#include "protocol/ask.h"

static const char system_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static const char *const fixed_env[] = {
	"HOME=/home/agent", "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "TMPDIR=/tmp", "WARD=1",
};

static bool path_is_visible(const struct plan *p, const char *dir)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].from_policy && path_is_beneath(dir, p->mounts[i].target))
			return true;
	return false;
}

/* PATH as the image has it, or the system's. */
static const char *image_path(const struct plan *p)
{
	for (size_t i = 0; i < p->image.env.len; i++)
		if (strncmp(p->image.env.items[i], "PATH=/", 6) == 0)
			return p->image.env.items[i] + 5;
	return system_path;
}

static bool is_fixed(const char *line)
{
	size_t n = strcspn(line, "=");

	for (size_t i = 0; i < ARRAY_LEN(fixed_env); i++)
		if (strncmp(fixed_env[i], line, n + 1) == 0)
			return true;
	return strncmp(line, "PATH=", 5) == 0 || strncmp(line, "PWD=", 4) == 0;
}

/* What the image wants in the environment; the policy's word comes later, and so counts. */
static void add_image_env(struct plan *p)
{
	for (size_t i = 0; i < p->image.env.len; i++)
		if (!is_fixed(p->image.env.items[i]))
			strv_add(&p->env, p->image.env.items[i]);
}

/* Whether a list as PATH has this entry. */
static bool list_has(const char *list, const char *dir, size_t n)
{
	while (*list) {
		size_t len = strcspn(list, ":");

		if (len == n && strncmp(list, dir, n) == 0)
			return true;
		list += len + (list[len] == ':');
	}
	return false;
}

/* The system's directories that the caller's PATH did not have, and those of toolchains. */
static void add_rest(const struct plan *p, struct buf *out)
{
	const char *rest = image_path(p), *own;

	if (out->failed)
		return;
	own = strchr(buf_text(out), '=') + 1;
	while (*rest) {
		size_t n = strcspn(rest, ":");

		if (p->image.root || !list_has(own, rest, n)) {
			buf_printf(out, "%.*s:", (int)n, rest);
			own = strchr(buf_text(out), '=') + 1;
		}
		rest += n + (rest[n] == ':');
	}
	for (size_t i = 0; i < p->tool_bins.len; i++)
		if (!list_has(own, p->tool_bins.items[i], strlen(p->tool_bins.items[i]))) {
			buf_printf(out, "%s:", p->tool_bins.items[i]);
			own = strchr(buf_text(out), '=') + 1;
		}
	if (p->proposals)
		buf_puts(out, ASK_DIR ":");
	if (out->len && out->data[out->len - 1] == ':')
		out->data[--out->len] = '\0';
}

/* Below the host's own /usr, which has the same names inside. */
static bool is_hosts(const struct plan *p, const char *dir)
{
	return !p->image.root && (path_is_beneath(dir, "/usr") || strcmp(dir, "/bin") == 0 ||
				  strcmp(dir, "/sbin") == 0);
}

static void add_path(struct plan *p)
{
	const char *path = getenv("PATH");
	bool own = p->spec->policy.fs_programs.len || plan_has_client(p);
	auto_buf out = { 0 };

	buf_puts(&out, own ? "PATH=" PLAN_PROGRAMS ":" : "PATH=");
	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *entry = strndup(path, n);
		auto_free char *dir = entry && *entry == '/' ? path_clean(entry) : NULL;

		if (dir && (is_hosts(p, dir) || path_is_visible(p, dir))) {
			buf_printf(&out, "%s:", dir);
		} else if (dir && p->toolchains.len) {
			auto_free char *seen = plan_toolchain_path(p, dir);

			buf_printf(&out, "%s%s", seen ? seen : "", seen ? ":" : "");
		}
		path += n + (path[n] == ':');
	}
	add_rest(p, &out);
	strv_take(&p->env, buf_take(&out));
}

static bool name_is(const char *line, const char *name, size_t n)
{
	return strncmp(line, name, n) == 0 && line[n] == '=';
}

void plan_set_env(struct plan *p, const char *name, size_t n, const char *value)
{
	for (size_t i = 0; i < p->env.len; i++)
		if (name_is(p->env.items[i], name, n)) {
			free(p->env.items[i]);
			if (asprintf(&p->env.items[i], "%.*s=%s", (int)n, name, value) < 0) {
				p->env.items[i] = NULL;
				p->env.len = i;
				p->env.failed = true;
			}
			return;
		}
	strv_addf(&p->env, "%.*s=%s", (int)n, name, value);
}

/* Everything of the caller's that begins with these n bytes. */
static void pass_prefix(struct plan *p, const char *prefix, size_t n)
{
	for (char *const *line = environ; *line; line++) {
		size_t name = strcspn(*line, "=");

		if (name >= n && (*line)[name] && strncmp(*line, prefix, n) == 0)
			plan_set_env(p, *line, name, *line + name + 1);
	}
}

/* Whether the description of a terminal is in a place that the sandbox sees. */
static bool has_terminal(const struct plan *p, const char *term)
{
	static const char *const places[] = { "/usr/lib/terminfo", "/usr/share/terminfo",
					      "/lib/terminfo" };
	char path[4096];

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s%s/%c/%s", p->image.root ? p->image.root : "",
			 places[i], *term, term);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* A terminal that only the user's home knows (newer ones bring their own description) would leave
 * every full-screen program helpless: what takes its place is what such terminals understand. */
static const char *known_terminal(struct plan *p, const char *term)
{
	static const char *const usual[] = { "xterm-256color", "xterm", "vt100" };

	if (!*term ||
	    (!strchr(term, '/') && *term != '.' && strlen(term) < 64 && has_terminal(p, term)))
		return term;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (has_terminal(p, usual[i])) {
			strv_addf(&p->notes,
				  "TERM is %s inside: the system has no terminfo entry for yours",
				  usual[i]);
			return usual[i];
		}
	return term;
}

/* Whether nothing outside can be reached, and nothing will be: ward learn begins so. */
static bool is_alone(const struct policy *p)
{
	if (p->net_ingress.len || p->net_mode == NET_MODE_OPEN)
		return false;
	return p->net_mode == NET_MODE_NONE ||
	       (!p->net_egress.len && !p->net_host_services.len && p->appr_mode != APPROVALS_ASK);
}

/* Without a network what fails once fails always: clients that would ask again for a minute do not,
 * nor do they look for news of themselves, which would be refused in every run of them.
 * The policy's own words for them come later and count. */
static void add_offline(struct plan *p)
{
	static const char *const variables[] = { "npm_config_fetch_retries=0",
						 "PIP_RETRIES=0",
						 "CARGO_NET_RETRY=0",
						 "UV_HTTP_RETRIES=0",
						 "BUNDLE_RETRY=0",
						 "npm_config_update_notifier=false",
						 "PIP_DISABLE_PIP_VERSION_CHECK=1" };

	if (!is_alone(&p->spec->policy))
		return;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		plan_set_env(p, variables[i], strcspn(variables[i], "="),
			     strchr(variables[i], '=') + 1);
}

static void add_user(struct plan *p)
{
	static const char *const names[] = { "USER", "LOGNAME" };
	char home[PLAN_USER_MAX + 8];

	plan_set_env(p, "HOME", 4, plan_home(p, home));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		plan_set_env(p, names[i], strlen(names[i]), p->spec->policy.proc_user);
}

int plan_make_env(struct plan *p, struct ward_err *e)
{
	const struct strv *wanted = &p->spec->policy.proc_env;

	for (size_t i = 0; i < ARRAY_LEN(fixed_env); i++)
		strv_add(&p->env, fixed_env[i]);
	if (strcmp(p->spec->policy.proc_user, "agent") != 0)
		add_user(p);
	add_image_env(p);
	add_offline(p);
	add_path(p);
	strv_addf(&p->env, "PWD=%s", p->cwd);
	if (p->level == LEVEL_LANDLOCK)
		/* to git, a system configuration that it may not read is an error */
		strv_add(&p->env, "GIT_CONFIG_NOSYSTEM=1");
	if (p->spec->tty)
		/* unless the caller's says better */
		strv_add(&p->env, "TERM=xterm-256color");
	for (size_t i = 0; i < p->tool_env.len; i++)
		strv_add(&p->env, p->tool_env.items[i]);
	for (const char *const *own = p->spec->own_env; own && *own; own++)
		plan_set_env(p, *own, strcspn(*own, "="), strchr(*own, '=') + 1);
	for (size_t i = 0; i < wanted->len; i++) {
		const char *item = wanted->items[i];
		size_t n = strcspn(item, "=");
		auto_free char *name = strndup(item, n);
		const char *value;

		if (!name)
			return ward_fail(e, ENOMEM, "out of memory");
		if (n && item[n - 1] == '*') {
			pass_prefix(p, item, n - 1);
			continue;
		}
		value = item[n] == '=' ? item + n + 1 : getenv(name);
		if (value && strcmp(item, "TERM") == 0)
			value = known_terminal(p, value);
		if (value)
			plan_set_env(p, name, n, value);
	}
	plan_gpus_env(p);
	/* whatever else sets them: these name what the sandbox trusts */
	for (const char *const *line = certs_env; p->live->certs && *line; line++)
		plan_set_env(p, *line, strcspn(*line, "="), strchr(*line, '=') + 1);
	if (p->own_program)
		plan_note_program(p);
	return p->env.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
