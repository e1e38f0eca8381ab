/*
 * git inside. In: the user's own git configuration. Out: /etc/gitconfig of the sandbox, with
 * user.name and user.email and nothing else of it: no credential helper, no signing key, no alias,
 * no include is followed. It is the system's configuration to git, so a repository's own identity
 * goes over it. safe.directory is set because the workspace's files may belong to a uid that the
 * sandbox does not know; whatever a repository makes git run stays in the sandbox. Runs in the
 * supervisor with the user's rights; a file that cannot be read or is broken gives no identity.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "plan/etc_cache.h"
#include "plan/plan.h"
#include "policy/gitconfig.h"

#define CONFIG_BYTES_MAX (1024 * 1024)
#define VALUE_MAX 256

struct identity {
	char name[VALUE_MAX], email[VALUE_MAX];
	bool refused; /* a value has control characters or is too long */
};

static void take_value(struct identity *id, char to[VALUE_MAX], const char *value)
{
	size_t n = strlen(value);

	*to = '\0';
	for (const char *s = value; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			n = VALUE_MAX;
	if (n >= VALUE_MAX)
		id->refused = true;
	else
		memcpy(to, value, n + 1);
}

static int on_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct identity *id = ctx;

	if (strcmp(entry->section, "user") != 0 || *entry->subsection || !entry->value)
		return 0;
	if (strcmp(entry->key, "name") == 0)
		take_value(id, id->name, entry->value);
	else if (strcmp(entry->key, "email") == 0)
		take_value(id, id->email, entry->value);
	return 0;
}

static void read_config(struct identity *id, const char *base, const char *rest)
{
	auto_free char *path = base && *base == '/' ? path_join(base, rest) : NULL;
	auto_fd fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	struct identity before = *id;
	auto_buf text = { 0 };
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    io_read_all(fd, CONFIG_BYTES_MAX, &text) == 0 &&
	    gitconfig_read(buf_text(&text), text.len, on_setting, id) < 0)
		*id = before; /* git would refuse it too */
}

/* In git's own order: what is read later goes over the earlier. */
static void read_identity(struct identity *id)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME"),
		   *global = getenv("GIT_CONFIG_GLOBAL");

	if (!getenv("GIT_CONFIG_NOSYSTEM"))
		read_config(id, "/etc", "gitconfig");
	if (global) {
		read_config(id, global, "");
		return;
	}
	read_config(id, xdg && *xdg ? xdg : home,
		    xdg && *xdg ? "git/config" : ".config/git/config");
	read_config(id, home, ".gitconfig");
}

/* A value as git's configuration writes it. */
static void put_value(struct buf *out, const char *key, const char *value)
{
	if (!*value)
		return;
	buf_printf(out, "\t%s = \"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_puts(out, "\\");
		buf_add(out, value, 1);
	}
	buf_puts(out, "\"\n");
}

/* In a kept /etc there is a link to it. */
static int add_file(struct plan *p, const char *text)
{
	bool kept = plan_keeps_etc(p->system, "/etc/gitconfig");
	int r = plan_add_file(p, text, kept ? ETC_CACHE_GIT : "/etc/gitconfig");

	if (r == 0 && kept) {
		r = plan_add_link(p, ETC_CACHE_GIT, "/etc/gitconfig");
		if (r == 0)
			p->mounts[p->mount_count - 1].kept = true;
	}
	return r;
}

int plan_add_git(struct plan *p, struct ward_err *e)
{
	struct identity id = { 0 };
	auto_buf text = { 0 };
	bool known = false;

	if (p->spec->policy.proc_git_identity)
		read_identity(&id);
	for (size_t i = 0; i < p->live->root_count; i++)
		known |= p->live->roots[i].repositories.len > 0;
	if (id.refused)
		strv_add(&p->notes, "git's user.name or user.email is too long or has control "
				    "characters: it is not passed to the sandbox");
	/* a key that signs commits is added to it when the run starts (egress/creds_start.c) */
	if (!known && !*id.name && !*id.email && !p->spec->policy.cred_ssh.len &&
	    !p->spec->policy.cred_gpg.len)
		return 0;
	buf_puts(&text, "[safe]\n\tdirectory = *\n");
	if (*id.name || *id.email) {
		buf_puts(&text, "[user]\n");
		put_value(&text, "name", id.name);
		put_value(&text, "email", id.email);
	}
	if (text.failed || add_file(p, buf_text(&text)) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}
