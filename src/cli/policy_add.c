/*
 * ward policy add: one value more in a policy file. In: fields and values, or an event of a run
 * whose explanation has them; a policy file. Out: that file with the smallest change of its text
 * (policy_edit.c), after the difference was shown and the operator said yes. Run by ward-explain
 * with the user's rights.
 *
 * The file is read through a descriptor of its directory and no link, written beside under a fresh
 * name and renamed over the old one, which is still the one that was read: a reader sees the old or
 * the new file. What lets secrets go further is not done without --secrets: a ready command must
 * not do it by the way. What was trusted stays so: whoever said yes to the difference has accepted
 * the new content. A file that widens the defaults and was not trusted is not by this, either.
 */
#include "cli/ask.h"
#include "cli/difference.h"
#include "cli/explain_parts.h"
#include "cli/tell.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/text.h"
#include "event/event.h"
#include "observe/learn_path.h"
#include "plan/project.h"
#include "plan/spec.h"
#include "policy/policy_edit.h"
#include "policy/secret_path.h"
#include "state/trust.h"

#define FILE_MAX (1024 * 1024)

struct target {
	int dir_fd; /* owned */
	char *name; /* in it; owned */
	char *path; /* as it is shown; owned */
	bool there;
	struct stat st;
	struct buf old, new;
	/* what was added is about a network that the file says there is none of */
	bool off;
	bool secrets;     /* it may hold some: a new file is readable by its owner only */
	struct strv done; /* "FIELD: VALUE" for the journal, without secrets */
};

static void target_clear(struct target *t)
{
	own_close_fd(&t->dir_fd);
	free(t->name);
	free(t->path);
	buf_free(&t->old);
	buf_free(&t->new);
	strv_free(&t->done);
}

/* The file that is meant: the one that was named, links resolved, or the policy of the current
 * directory. */
static int find_file(const char *named, struct target *t, struct ward_err *e)
{
	static const char *const names[] = { "ward.yaml", "ward.json" };
	auto_free char *real = named ? realpath(named, NULL) : NULL;
	const char *path = real ? real : named ? named : names[0], *slash;
	auto_free char *dir = NULL, *here = NULL, *project = NULL, *above = NULL;

	for (size_t i = 0; !named && i < ARRAY_LEN(names); i++)
		if (faccessat(AT_FDCWD, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			path = names[i];
	/* further up, as a run finds it */
	if (!named && workspace_here(&here, e) == 0 && project_find(here, &project, NULL, e) == 0 &&
	    project && strcmp(project, here) != 0) {
		above = path_join(project, names[0]);
		if (above && access(above, F_OK) != 0) {
			free(above);
			above = path_join(project, names[1]);
		}
		path = above ? above : path;
	}
	slash = strrchr(path, '/');
	dir = slash == path ? strdup("/")
	      : slash       ? strndup(path, (size_t)(slash - path))
			    : strdup(".");
	t->name = strdup(slash ? slash + 1 : path);
	t->path = strdup(named ? named : path);
	if (!dir || !t->name || !t->path)
		return ward_fail(e, ENOMEM, "out of memory");
	t->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->dir_fd < 0 ? ward_fail_errno(e, "cannot open the directory %.300s", dir) : 0;
}

static int read_file(struct target *t, struct ward_err *e)
{
	auto_fd fd = openat(t->dir_fd, t->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0; /* a new one is made */
	if (fd < 0 && errno == ELOOP) {
		ward_fail(e, ELOOP, "%.300s is a link", t->path);
		return ward_remedy(e, "name the file with -p FILE");
	}
	if (fd < 0 || fstat(fd, &t->st) < 0)
		return ward_fail_errno(e, "cannot open %.300s", t->path);
	if (!S_ISREG(t->st.st_mode))
		return ward_fail(e, EINVAL, "%.300s is not a regular file", t->path);
	t->there = true;
	r = io_read_all(fd, FILE_MAX, &t->old);
	return r < 0 ? ward_fail(e, -r, "cannot read %.300s: %s", t->path, strerror(-r)) : 0;
}

/* -- the change */

/* A file that is made says which form it has. */
static void begin_file(struct target *t)
{
	size_t n = strlen(t->name);

	if (t->there)
		buf_add(&t->new, buf_text(&t->old), t->old.len);
	else
		buf_puts(&t->new, n > 5 && strcmp(t->name + n - 5, ".json") == 0
					  ? "{\n  \"version\": 1\n}\n"
					  : "version: 1\n");
}

/* For the journal: of variables the name, of addresses no user information. */
static void keep_done(struct target *t, const char *field, const char *value)
{
	const char *scheme = strstr(value, "://"), *user = scheme ? scheme + 3 : value,
		   *at = strrchr(user, '@');

	if (strcmp(field, "process.env") == 0)
		strv_addf(&t->done, "%s: %.*s", field, *value == '[' ? 5 : (int)strcspn(value, "="),
			  *value == '[' ? "[...]" : value);
	else if (at && (scheme || strcmp(field, "network.upstream_proxy") == 0))
		strv_addf(&t->done, "%s: %.*s***%s", field, (int)(user - value), value, at);
	else
		strv_addf(&t->done, "%s: %s", field, value);
}

static int add_one(struct target *t, const char *field, const char *value, struct ward_err *e)
{
	auto_buf next = { 0 };
	int r = policy_edit(t->name, (const uint8_t *)buf_text(&t->new), t->new.len, field, value,
			    &next, e);

	if (r < 0)
		return strncmp(e->why, field, strlen(field)) == 0 ? r
								  : ward_wrap(e, "%.60s", field);
	if (r == 0)
		keep_done(t, field, value);
	buf_free(&t->new);
	t->new = next;
	next = (struct buf){ 0 };
	return 0;
}

static int read_policy(const char *name, const struct buf *bytes, struct policy *p,
		       struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	int r = policy_defaults(p, e);

	if (r == 0 && policy_read(p, name, (const uint8_t *)buf_text(bytes), bytes->len,
				  POLICY_FILE, &errors) < 0)
		r = ward_fail(e, EINVAL, "%.600s",
			      errors.lines.len ? errors.lines.items[0] : "cannot read the policy");
	strv_free(&errors.lines);
	return r;
}

/* A policy that does not mention the network has none: a rule alone would open nothing. Existing
 * settings stay. */
static int add_mode(struct target *t, struct ward_err *e)
{
	struct policy p = { 0 };
	int r = read_policy(t->name, &t->new, &p, e);
	bool silent = r == 0 && p.net_mode == NET_MODE_NONE &&
		      p.origin[POLICY_F_net_mode].source == POLICY_DEFAULT;

	t->off = r == 0 && p.net_mode == NET_MODE_NONE && !silent;
	policy_clear(&p);
	return silent ? add_one(t, "network.mode", "restricted", e) : r;
}

static int add_words(struct target *t, char **words, size_t count, struct ward_err *e)
{
	bool rules = false;
	int r = 0;

	if (!count || count % 2) {
		ward_fail(e, EINVAL, count ? "%.60s: missing value" : "nothing to add",
			  count ? words[count - 1] : "");
		return ward_remedy(e, "ward policy add FIELD VALUE; for instance ward policy add "
				      "network.egress_allowlist api.example.com:443");
	}
	for (size_t i = 0; i < count && r == 0; i += 2) {
		rules |= strcmp(words[i], "network.egress_allowlist") == 0 ||
			 strcmp(words[i], "network.host_services") == 0;
		r = add_one(t, words[i], words[i + 1], e);
	}
	return r == 0 && rules ? add_mode(t, e) : r;
}

/* RUN:EVENT, or EVENT of the last run here. */
static int add_event(struct target *t, const char *event, struct ward_err *e)
{
	const char *colon = strrchr(event, ':');
	auto_free char *run = colon ? strndup(event, (size_t)(colon - event)) : NULL;
	auto_fd audit = place_open(false, e);
	struct explain_source s = { 0 };
	auto_explanation x = { 0 };
	int r = audit < 0 ? audit : explain_open(audit, run, &s, e);

	if (r == 0)
		r = explain_number(audit, &s, colon ? colon + 1 : event, &x, e);
	if (r == 0 && !x.change_count) {
		ward_fail(e, ENOTSUP, "no policy change allows this: %.300s", buf_text(&x.what));
		r = ward_remedy(e, "%.400s",
				x.advice.len ? buf_text(&x.advice) : "see ward explain");
	}
	for (size_t i = 0; i < x.change_count && r == 0; i++)
		r = add_one(t, x.changes[i].field, x.changes[i].value, e);
	explain_close(&s);
	return r;
}

/* -- what it means */

/* Whether an entry of a list is there that was not before, and could hold a secret. */
static const char *new_secret(const struct strv *old, const struct strv *new)
{
	for (size_t i = 0; i < new->len; i++)
		if (!strv_has(old, new->items[i]) && secret_is_word(new->items[i]))
			return new->items[i];
	return NULL;
}

/* Whether a directory or file of the host, which may begin with ~, is one that secrets lie in. */
static bool shows_secrets(const char *path)
{
	const char *home = getenv("HOME");
	auto_free char *clean_home = home && *home == '/' ? path_clean(home) : NULL;
	auto_free char *whole = *path == '~' && clean_home
					? path_join(clean_home, path + 1 + strspn(path + 1, "/"))
					: strdup(path);
	auto_free char *clean = whole ? path_clean(whole) : NULL;

	return !clean || learn_holds_secrets(clean, clean_home);
}

/* What lets secrets go further, or shows what holds them. NULL: nothing. */
static const char *widens_secrets(const struct policy *old, const struct policy *new, char *room,
				  size_t n)
{
	static const uint8_t fields[] = { POLICY_F_cred_mode,
					  POLICY_F_cred_scanning,
					  POLICY_F_cred_scan_requests,
					  POLICY_F_cred_scan_output,
					  POLICY_F_cred_scan_workspace,
					  POLICY_F_cred_scan_personal,
					  POLICY_F_cred_leaks,
					  POLICY_F_cred_grants,
					  POLICY_F_cred_ssh,
					  POLICY_F_cred_gpg };
	const char *env = new_secret(&old->proc_env, &new->proc_env),
		   *proxy = new->net_upstream_proxy;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (policy_field_widens(old, new, (enum policy_field)fields[i], 0))
			return policy_row((enum policy_field)fields[i])->path;
	if (proxy && strchr(proxy, '@') &&
	    !(old->net_upstream_proxy && strcmp(old->net_upstream_proxy, proxy) == 0))
		return policy_row(POLICY_F_net_upstream_proxy)->path;
	for (size_t i = 0; i < new->fs_host_mounts.len; i++) {
		const char *path = new->fs_host_mounts.items[i].path;
		bool known = false;

		for (size_t k = 0; k < old->fs_host_mounts.len; k++)
			known |= strcmp(old->fs_host_mounts.items[k].path, path) == 0;
		if (known || (!secret_is_word(path) && !shows_secrets(path)))
			continue;
		snprintf(room, n, "filesystem.host_mounts %.200s", path);
		return room;
	}
	if (!env)
		return NULL;
	snprintf(room, n, "process.env %.*s", (int)strcspn(env, "="), env);
	return room;
}

static int check_secrets(const struct target *t, bool allowed, struct strv *wider,
			 struct ward_err *e)
{
	struct policy old = { 0 }, new = { 0 };
	char room[256];
	const char *what;
	int r = read_policy(t->name, &t->old, &old, e);

	if (r == 0)
		r = read_policy(t->name, &t->new, &new, e);
	if (r == 0 && policy_compare(&old, &new, wider) < 0)
		r = ward_fail(e, ENOMEM, "out of memory");
	what = r == 0 && !allowed ? widens_secrets(&old, &new, room, sizeof(room)) : NULL;
	if (what) {
		ward_fail(e, EACCES,
			  "%s: this lets secrets travel further, or exposes what may hold them",
			  what);
		r = ward_remedy(e, "if that is what you want, add --secrets");
	}
	policy_clear(&old);
	policy_clear(&new);
	return r;
}

/* -- showing, asking, writing */

/* Asks on the terminal; somebody must be there. */
static int ask_to_write(struct ward_err *e)
{
	int r = ask_person("write it? [y/N] ", "written", e);

	return r == -EACCES ? ward_remedy(e, "--yes writes without asking, --dry-run only shows "
					     "the change")
			    : r;
}

static bool is_unchanged(const struct target *t)
{
	struct stat now;

	if (fstatat(t->dir_fd, t->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return !t->there && errno == ENOENT;
	return t->there && now.st_ino == t->st.st_ino && now.st_dev == t->st.st_dev &&
	       now.st_size == t->st.st_size && now.st_mtim.tv_sec == t->st.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == t->st.st_mtim.tv_nsec;
}

static int fill_fresh(const struct target *t, int fd, struct ward_err *e)
{
	int r = io_write_all(fd, buf_text(&t->new), t->new.len);

	if (r < 0)
		return ward_fail(e, -r,
				 "cannot write the new %.300s beside the old one, which is "
				 "unchanged: %s",
				 t->path, strerror(-r));
	if (t->there && (fchmod(fd, t->st.st_mode & 07777) < 0 ||
			 ((t->st.st_uid != geteuid() || t->st.st_gid != getegid()) &&
			  fchown(fd, t->st.st_uid, t->st.st_gid) < 0)))
		return ward_fail_errno(e, "cannot set the mode and owner of %.300s on the new file",
				       t->path);
	if (fsync(fd) < 0)
		return ward_fail_errno(e, "cannot write next to %.300s", t->path);
	if (is_unchanged(t))
		return 0;
	ward_fail(e, EBUSY, "%.300s was changed by another process meanwhile", t->path);
	return ward_remedy(e, "nothing was written: try again");
}

static int write_file(const struct target *t, struct ward_err *e)
{
	char name[48];
	uint64_t random = 0;
	auto_fd fd = -1;
	int r;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return ward_fail_errno(e, "cannot get a random number");
	snprintf(name, sizeof(name), ".ward-policy-%016llx", (unsigned long long)random);
	fd = openat(t->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    t->there || t->secrets ? 0600 : 0644);
	if (fd < 0)
		return ward_fail_errno(e, "cannot create a file next to %.300s", t->path);
	r = fill_fresh(t, fd, e);
	if (r == 0 && renameat(t->dir_fd, name, t->dir_fd, t->name) < 0)
		r = ward_fail_errno(e, "cannot replace %.300s", t->path);
	if (r < 0)
		unlinkat(t->dir_fd, name, 0);
	return r;
}

static void tell(const struct target *t)
{
	for (size_t i = 0; i < t->done.len; i++) {
		struct ward_event v =
			event_make(EVENT_POLICY_CHANGE, ACTION_ALLOW, t->done.items[i]);

		event_text(&v, FIELD_CHANGE, "add");
		event_text(&v, FIELD_POLICY, t->path);
		event_text(&v, FIELD_VIA, "cli");
		tell_done(&v);
	}
}

static void put_json(const struct target *t, const struct strv *wider, const struct buf *difference,
		     bool written, bool trusted, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "file", t->path);
	json_bool(&j, "changed", t->done.len > 0);
	json_bool(&j, "written", written);
	json_bool(&j, "trusted", trusted);
	json_string(&j, "diff", t->done.len ? buf_text(difference) : "");
	json_begin_array(&j, "widens");
	for (size_t i = 0; i < wider->len; i++)
		json_string(&j, NULL, wider->items[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* Whether the file needed no ward trust or had it: then all of the new content is accepted once the
 * difference is. */
static int was_accepted(const struct target *t, const char *path, struct ward_err *e)
{
	struct spec_content old = { 0 };
	struct policy_errors errors = { 0 };
	int r = 1;

	if (t->there) {
		r = spec_content_read(path, &t->old, &old, &errors, e);
		r = r < 0 ? 0 : !old.wider.len ? 1 : trust_has(old.hex, e);
	}
	spec_content_clear(&old);
	strv_free(&errors.lines);
	return r;
}

/* Accepts the content that was written, as ward trust would. */
static bool keep_trust(const struct target *t, const char *path, struct ward_err *e)
{
	struct spec_content new = { 0 };
	struct policy_errors errors = { 0 };
	int r = spec_content_read(path, &t->new, &new, &errors, e);

	if (r == 0 && new.wider.len)
		r = spec_content_accept(&new, e);
	if (r == 0 && new.wider.len) {
		struct ward_event v = event_make(EVENT_POLICY_TRUST, ACTION_ALLOW, path);

		event_text(&v, FIELD_DIGEST, new.hex);
		tell_done(&v);
	}
	spec_content_clear(&new);
	strv_free(&errors.lines);
	return r == 0;
}

/* The file's own path, links resolved, whether it is there yet or not. */
static char *real_path(const struct target *t)
{
	char proc[32];
	auto_free char *dir = NULL;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", t->dir_fd);
	dir = realpath(proc, NULL);
	return dir ? path_join(dir, t->name) : NULL;
}

/* A file that is new, or that ward has written before, is ward's work: a sandbox that runs there
 * now has no say in it, and its end leaves it in its place. */
static int write_and_note(const struct target *t, const char *path, bool *ret_trusted,
			  struct ward_err *e)
{
	bool ours = !t->there || trust_is_written(path, t->dir_fd, t->name, 0);
	struct ward_err ignored;
	int r = was_accepted(t, path, e);

	*ret_trusted = r > 0;
	r = r < 0 ? r : write_file(t, e);
	if (r == 0 && ours)
		(void)!trust_note_written(path, &t->new, &ignored);
	return r;
}

/* Whether it is the difference that was shown before. */
static int check_expected(const struct options *o, const struct target *t,
			  const struct buf *difference, struct ward_err *e)
{
	char hex[SHA256_HEX];

	sha256_hex(buf_text(difference), difference->len, hex);
	if (!o->expect_digest || !t->done.len || strcmp(o->expect_digest, hex) == 0)
		return 0;
	ward_fail(e, EBUSY, "%.300s was changed meanwhile: the difference is another one", t->path);
	return ward_remedy(e, "nothing was written: look at it again");
}

/* The difference is shown, then somebody says yes, then it is written. */
static int finish(const struct options *o, struct target *t, const struct strv *wider,
		  struct ward_err *e)
{
	bool write = t->done.len && !o->dry_run, trusted = false;
	auto_free char *path = real_path(t);
	auto_buf difference = { 0 }, out = { 0 };
	int r = difference_put(t->there ? t->path : "/dev/null", &t->old, t->path, &t->new,
			       &difference);

	if (r < 0 || difference.failed || !path)
		return ward_fail(e, ENOMEM, "out of memory");
	r = check_expected(o, t, &difference, e);
	if (r < 0)
		return r;
	if (!o->json && t->done.len)
		r = say_out(&difference, 0);
	if (r == 0 && write && !o->yes)
		r = ask_to_write(e);
	if (r == 0 && write)
		r = write_and_note(t, path, &trusted, e);
	if (r < 0)
		return r;
	trusted = trusted && keep_trust(t, path, e);
	if (write)
		tell(t);
	if (o->json)
		put_json(t, wider, &difference, write, trusted, &out);
	else if (!t->done.len)
		buf_printf(&out, "%s already has it\n", t->path);
	if (!o->json && write && t->off)
		buf_printf(&out,
			   "network.mode is none, so the addition has no effect; to enable it: "
			   "ward policy add %s%s%snetwork.mode restricted\n",
			   o->policy_file ? "-p " : "",
			   !o->policy_file          ? ""
			   : text_is_plain(t->path) ? t->path
						    : "FILE",
			   o->policy_file ? " " : "");
	if (!o->json && write && trusted && wider->len)
		buf_puts(&out, "written and accepted, as by ward trust\n");
	else if (!o->json && write && wider->len)
		buf_printf(&out,
			   "written; to use it in a workspace without -p, accept it first: ward "
			   "trust %s\n",
			   t->path);
	return say_out(&out, 0);
}

int policy_add(struct options *o)
{
	struct target t = { .dir_fd = -1, .secrets = o->secrets };
	struct ward_err e = { 0 };
	auto_strv wider = { 0 };
	int r, code = EXIT_REFUSED;

	if (strcmp(o->words[0], "show") == 0 && o->word_count == 1)
		return policy_show(o);
	if (strcmp(o->words[0], "add") != 0) {
		ward_fail(&e, EINVAL, "unknown command: ward policy %.60s", o->words[0]);
		ward_remedy(&e, "ward policy add FIELD VALUE, or ward policy show");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (o->from_event && o->word_count > 1) {
		ward_fail(&e, EINVAL,
			  "--from-event already says what to add; unexpected argument: %.60s",
			  o->words[1]);
		return say_error(&e, o->json, EXIT_USAGE);
	}
	r = find_file(o->policy_file, &t, &e);
	if (r == 0)
		r = read_file(&t, &e);
	if (r == 0) {
		begin_file(&t);
		r = o->from_event ? add_event(&t, o->from_event, &e)
				  : add_words(&t, o->words + 1, o->word_count - 1, &e);
		code = r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED;
	}
	if (r == 0)
		r = check_secrets(&t, o->secrets, &wider, &e);
	if (r == 0)
		r = finish(o, &t, &wider, &e);
	if (r == -ECANCELED)
		code = EXIT_FINDINGS;
	target_clear(&t);
	return r < 0 ? say_error(&e, o->json, code) : r;
}
