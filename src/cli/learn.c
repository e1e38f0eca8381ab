/*
 * ward learn: the least policy that a command needs. In: a command. Out: a policy file, or what is
 * missing for one.
 *
 * The command runs inside a sandbox from the first round on, and its changes are kept aside. A
 * round shows which files it missed, which names and system calls it was refused; what may be given
 * is given to the next round, until the command succeeds or nothing is left to give. Then the
 * policy is written down, and the command is run once more under that file alone. Only a policy
 * that was seen to suffice is handed out.
 *
 * The command is not trusted: whatever it asks for, secrets (tables/learn.def), private addresses
 * and names that the user has not allowed are not given, but listed. Files are given only to a
 * command that fails without them: asking is not needing.
 */
#include "cli/learn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/learn_base.h"
#include "cli/learn_round.h"
#include "cli/learn_ways.h"
#include "observe/learn_path.h"
#include "plan/plan_root.h"
#include "plan/spec.h"
#include "plan/toolchains.h"
#include "policy/units.h"
#include "state/trust.h"

#define ROUNDS_MAX 12
#define LEAVE_OUT_MAX 8 /* files and directories that are tried one by one */

struct learn {
	struct options *o;
	struct learn_policy learned;
	struct learn_ways ways;
	struct learn_needs needs; /* of the last round */
	struct run_outcome last;
	struct policy base; /* --merge: what is there already */
	bool has_base;
	struct strv withheld;   /* "PATH: why" */
	char *home, *workspace; /* absolute, owned; home: NULL: unknown */
	/* a policy that says nothing, and at last the one that was learned */
	struct learn_base base_file;
	struct learn_stop stop;
	int expect;
	unsigned rounds;
	bool quiet;
};

static void say(const struct learn *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct learn *l, const char *format, ...)
{
	auto_buf line = { 0 };
	auto_free char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (l->quiet || !text)
		return;
	buf_puts(&line, "ward learn: ");
	text_escape(&line, text);
	buf_puts(&line, "\n");
	say_err(&line);
}

/* ---- files ---- */

static void withhold(struct learn *l, const char *path, enum learn_verdict why)
{
	auto_buf line = { 0 };

	text_escape(&line, path);
	buf_puts(&line, why == LEARN_SECRET  ? ": it may contain a secret"
			: why == LEARN_BROAD ? ": it would expose too much"
					     : ": no such file");
	if (!strv_has(&l->withheld, buf_text(&line)))
		strv_add(&l->withheld, buf_text(&line));
}

/* Gives the toolchain that the path is part of: directories with a version or a hash in their name
 * are gone after the next update. True: it is a new one. */
static bool give_toolchain(struct learn *l, const char *path)
{
	const char *preset = toolchain_of(path);

	if (!preset || strv_has(&l->learned.toolchains, preset))
		return false;
	strv_add(&l->learned.toolchains, preset);
	say(l, "grants the toolchain %s, for %s", preset, path);
	return true;
}

/* Gives one path of the host. settings: also what is only a program's settings. True: it is a new
 * one. */
static bool give_path(struct learn *l, const char *inside, const char *host, bool settings)
{
	auto_free char *path = NULL, *at = NULL;
	enum learn_verdict verdict;

	if (give_toolchain(l, host))
		return true;
	verdict = learn_generalise(host, l->home, l->workspace, &path);
	if (verdict != LEARN_GIVE && verdict != LEARN_SETTINGS) {
		withhold(l, host, verdict);
		return false;
	}
	if (verdict == LEARN_SETTINGS && !settings)
		return false;
	if (strcmp(inside, host) != 0) { /* the private home stands for the user's */
		if (!l->home || !path_is_beneath(path, l->home))
			return false;
		at = path_join(PLAN_HOME, path[strlen(l->home)] ? path + strlen(l->home) + 1 : ".");
		if (!at)
			return false;
	}
	if (!learn_add_mount(&l->learned, path, at))
		return false;
	say(l, "grants %s, read-only", path);
	return true;
}

/* Programs ask for the directories above what they want, too: a program that has the one does not
 * need all of the other. */
static bool is_above_another(const struct strv *paths, size_t which)
{
	for (size_t i = 0; i < paths->len; i++)
		if (i != which && path_is_beneath(paths->items[i], paths->items[which]))
			return true;
	return false;
}

static bool give_files(struct learn *l, bool settings)
{
	bool more = false;

	for (size_t i = 0; i < l->needs.missing.len; i++)
		if (!path_is_beneath(l->needs.hosts_path.items[i], l->workspace) &&
		    !is_above_another(&l->needs.missing, i))
			more |= give_path(l, l->needs.missing.items[i],
					  l->needs.hosts_path.items[i], settings);
	return more;
}

/* Reports secrets that were asked for, whether they were needed or not. */
static void note_secrets(struct learn *l)
{
	for (size_t i = 0; i < l->needs.hosts_path.len; i++)
		if (learn_judge(l->needs.hosts_path.items[i], l->home) == LEARN_SECRET)
			withhold(l, l->needs.hosts_path.items[i], LEARN_SECRET);
}

/* The command itself is looked up before anything runs that could be watched. */
static void give_command(struct learn *l)
{
	const char *name = l->o->words[0], *path = getenv("PATH");
	auto_free char *full = NULL, *here = NULL;
	struct ward_err e = { 0 };

	if (strchr(name, '/')) {
		if (workspace_here(&here, &e) == 0)
			full = path_join(here, name);
		if (full && !path_is_beneath(full, l->workspace) &&
		    !path_is_beneath(full, "/usr") && !path_is_beneath(full, "/bin") &&
		    access(full, X_OK) == 0)
			(void)give_path(l, full, full, true);
		return;
	}
	for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
		auto_free char *dir = strndup(path, strcspn(path, ":"));
		auto_free char *file = dir && *dir == '/' ? path_join(dir, name) : NULL;
		struct stat st;

		if (!file || access(file, X_OK) < 0 || stat(file, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (!path_is_beneath(file, "/usr") && !path_is_beneath(file, "/bin") &&
		    !path_is_beneath(file, "/sbin") && !give_toolchain(l, file)) {
			strv_add(&l->learned.programs, name);
			say(l, "grants the program %s", file);
		}
		return;
	}
}

/* ---- system calls ---- */

static bool give_calls(struct learn *l)
{
	if (l->learned.build)
		return false;
	for (size_t i = 0; i < l->needs.call_remedies.len; i++)
		if (strcmp(l->needs.call_remedies.items[i], "process.syscalls: build") == 0) {
			l->learned.build = true;
			say(l, "grants the system calls of process.syscalls: build, for %s",
			    l->needs.calls.items[i]);
			return true;
		}
	return false;
}

/* ---- rounds ---- */

/* Whether it was asked to end: a signal came, or the command was interrupted on its terminal. */
static bool is_stopped(struct learn *l)
{
	(void)learn_stop_asked(&l->stop);
	if (!l->stop.signal &&
	    (l->last.exit_code == 128 + SIGINT || l->last.exit_code == 128 + SIGQUIT))
		l->stop.signal = l->last.exit_code - 128;
	if ((l->stop.signal == SIGINT || l->stop.signal == SIGQUIT) &&
	    l->expect == 128 + l->stop.signal)
		l->stop.signal = 0;
	return l->stop.signal != 0;
}

static int fail_stopped(const struct learn *l, struct ward_err *e)
{
	return ward_fail(e, EINTR, "stopped by %s, nothing was written", strsignal(l->stop.signal));
}

static int run_round(struct learn *l, const struct learn_round *r, struct ward_err *e)
{
	int status = 0;

	if (l->last.run_id[0])
		learn_forget(l->last.run_id);
	learn_needs_clear(&l->needs);
	l->last = (struct run_outcome){ 0 };
	if (!is_stopped(l))
		status = learn_run(r, l->o, &l->stop, &l->last, e);
	if (is_stopped(l))
		return fail_stopped(l, e);
	if (status < 0)
		return -EINVAL;
	if (learn_read(l->last.run_id, &l->needs, e) < 0)
		return -EINVAL;
	if (l->needs.lost)
		say(l, "%llu events of the run are missing, so the policy may be incomplete",
		    (unsigned long long)l->needs.lost);
	note_secrets(l);
	return 0;
}

/* Gives what the last round has shown to be missing. True: the next one has more than the last. */
static bool give_more(struct learn *l)
{
	bool failed = l->last.exit_code != l->expect,
	     more = learn_ways_give(&l->ways, &l->needs, &l->learned.rules);

	if (!failed)
		return more;
	more |= give_calls(l);
	more |= give_files(l, false);
	if (!more)
		more = give_files(l, true);
	return more;
}

static struct learn_round next_round(const struct learn *l)
{
	return (struct learn_round){ .policy_file = l->has_base ? l->o->merge : l->base_file.path,
				     .own_file = !l->has_base,
				     .learned = &l->learned,
				     .open = l->o->allow_public,
				     .expect = l->expect,
				     .read_only =
					     l->has_base && l->base.fs_mode == FS_MODE_READ_ONLY };
}

/* 1: the command succeeds; 0: nothing is left to give. */
static int learn_rounds(struct learn *l, struct ward_err *e)
{
	const struct learn_round r = next_round(l);
	bool more = true;

	while (more && l->rounds < ROUNDS_MAX) {
		l->rounds++;
		say(l, "round %u", l->rounds);
		if (run_round(l, &r, e) < 0)
			return -EINVAL;
		more = give_more(l);
	}
	return l->last.exit_code == l->expect && !more;
}

/* Files were given because the command failed and asked for them. Those that it does as well
 * without are taken out again, one after the other. */
static int leave_out(struct learn *l, struct ward_err *e)
{
	const struct learn_round r = next_round(l);
	struct learn_policy *p = &l->learned;
	int status;

	if (p->mount_count < 2 || p->mount_count > LEAVE_OUT_MAX)
		return 1;
	for (size_t i = p->mount_count; i-- > 0 && p->mount_count > 1;) {
		struct learn_mount out = p->mounts[i];

		p->mounts[i] = p->mounts[--p->mount_count];
		say(l, "round %u, without %s", ++l->rounds, out.path);
		status = run_round(l, &r, e);
		if (status < 0 || l->last.exit_code == l->expect) {
			free(out.path);
			free(out.at);
			if (status < 0)
				return status;
			continue;
		}
		p->mounts[p->mount_count++] = p->mounts[i];
		p->mounts[i] = out;
	}
	/* what the others used is seen once more with all that stays */
	return run_round(l, &r, e) < 0 ? -EINVAL : l->last.exit_code == l->expect;
}

/* Runs the command once more with the policy alone. 1: it suffices, 0: it does not. */
static int verify(struct learn *l, const struct buf *text, struct ward_err *e)
{
	struct learn_round r = { .policy_file = l->base_file.path,
				 .own_file = true,
				 .learned = &l->learned,
				 .as_written = true,
				 .expect = l->expect,
				 .read_only = !l->learned.writes };
	size_t calls = l->needs.calls.len;

	if (l->has_base)
		r = (struct learn_round){ .policy_file = l->o->merge,
					  .learned = &l->learned,
					  .read_only = l->base.fs_mode == FS_MODE_READ_ONLY };
	else if (learn_base_write(&l->base_file, text, e) < 0)
		return -EIO;
	say(l, "round %u, with the policy alone", ++l->rounds);
	if (run_round(l, &r, e) < 0)
		return -EINVAL;
	return l->last.exit_code == l->expect && l->needs.calls.len <= calls;
}

/* Of the toolchains, those that a program was started from: the project's files may have chosen
 * others. A policy that is merged keeps its own, and what was given is added. */
static void keep_used_toolchains(struct learn *l)
{
	struct strv used = { 0 };

	if (l->has_base)
		return;
	for (size_t i = 0; i < l->needs.programs.len; i++) {
		const char *preset = toolchain_of(l->needs.programs.items[i]);

		if (preset && !strv_has(&used, preset))
			strv_add(&used, preset);
	}
	strv_free(&l->learned.toolchains);
	l->learned.toolchains = used;
}

/* From what the last round used to a policy that was seen to suffice. 1: *text holds it. */
static int settle(struct learn *l, struct buf *text, struct ward_err *e)
{
	auto_strv programs = { 0 };
	struct strv used = { 0 };
	int status = -ENOMEM;

	for (size_t i = 0; i < l->needs.programs.len; i++)
		strv_add(&programs, l->needs.programs.items[i]);
	keep_used_toolchains(l);
	learn_ways_used(&l->ways, &l->needs, &l->learned.rules, &used);
	strv_free(&l->learned.rules);
	l->learned.rules = used;
	l->learned.writes = l->last.changes > 0;
	/* what writes without changing anything needs a second one */
	for (unsigned turn = 0; turn < 2; turn++) {
		text->len = 0;
		status = learn_policy_text(&l->learned, l->o, &programs, text, e);
		if (status == 0)
			status = verify(l, text, e);
		if (status != 0 || l->learned.writes)
			break;
		say(l, "it needs write access, although nothing changed");
		l->learned.writes = true;
	}
	return status;
}

/* ---- the summary at the end ---- */

static void put_lines(const struct learn *l, const char *title, const struct strv *lines)
{
	for (size_t i = 0; i < lines->len; i++)
		say(l, "%s%s", i ? "  " : title, lines->items[i]);
}

static void report(struct learn *l)
{
	for (size_t i = 0; i < l->needs.calls.len; i++)
		say(l, "refused: system call %s%s%s", l->needs.calls.items[i],
		    l->needs.call_remedies.items[i][0] ? "; to allow it: " : "",
		    l->needs.call_remedies.items[i]);
	put_lines(l, "requested, not granted: ", &l->withheld);
	put_lines(l, "requested, not granted: ", &l->ways.refused);
	if (!l->last.changes)
		return;
	if (l->o->keep_changes)
		say(l, "the command's changes to the workspace are kept: ward diff %s",
		    l->last.run_id);
	else
		say(l,
		    "the command's changes to the workspace (%zu) were discarded; --keep keeps "
		    "them",
		    l->last.changes);
}

static void put_json(const struct learn *l, const char *policy, bool suffices, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_bool(&j, "suffices", suffices);
	json_int(&j, "exit", l->last.exit_code);
	json_uint(&j, "rounds", l->rounds);
	json_string(&j, "policy", policy);
	json_string(&j, "run", l->last.run_id);
	json_uint(&j, "changes", l->last.changes);
	json_begin_array(&j, "mounts");
	for (size_t i = 0; i < l->learned.mount_count; i++)
		json_string(&j, NULL, l->learned.mounts[i].path);
	json_end_array(&j);
	json_begin_array(&j, "rules");
	for (size_t i = 0; i < l->learned.rules.len; i++)
		json_string(&j, NULL, l->learned.rules.items[i]);
	json_end_array(&j);
	json_begin_array(&j, "not_given");
	for (size_t i = 0; i < l->withheld.len; i++)
		json_string(&j, NULL, l->withheld.items[i]);
	for (size_t i = 0; i < l->ways.refused.len; i++)
		json_string(&j, NULL, l->ways.refused.items[i]);
	json_end_array(&j);
	json_begin_array(&j, "calls");
	for (size_t i = 0; i < l->needs.calls.len; i++)
		json_string(&j, NULL, l->needs.calls.items[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* The file is new, and its content is the user's word from now on. */
static int write_policy(const struct learn *l, const struct buf *text, struct ward_err *e)
{
	const char *name = l->o->output;
	auto_fd fd =
		open(name,
		     O_WRONLY | O_CREAT | (l->o->force ? O_TRUNC : O_EXCL) | O_NOFOLLOW | O_CLOEXEC,
		     0644);
	char hex[SHA256_HEX];

	if (fd < 0 && errno == EEXIST) {
		ward_fail(e, EEXIST, "%.300s already exists", name);
		return ward_remedy(e, "--merge %.300s adds to it, --force overwrites it", name);
	}
	if (fd < 0)
		return ward_fail_errno(e, "cannot create %.300s", name);
	if (io_write_all(fd, text->data, text->len) < 0)
		return ward_fail_errno(e, "cannot write %.300s", name);
	sha256_hex(text->data, text->len, hex);
	if (trust_add(hex, name, e) < 0)
		return -EIO;
	say(l, "wrote %s and accepted it, as ward trust does; next: ward run -p %s -- CMD", name,
	    name);
	return 0;
}

static int finish(struct learn *l, const struct buf *text, bool suffices, struct ward_err *e)
{
	auto_buf out = { 0 };
	int code = suffices ? EXIT_FINE : EXIT_FINDINGS;

	report(l);
	if (suffices)
		say(l, "verified: the command ran under this policy alone and exited with %d",
		    l->last.exit_code);
	else
		say(l,
		    "no policy: the command exited with %d, not %d, with everything that may be "
		    "granted",
		    l->last.exit_code, l->expect);
	if (suffices && l->has_base)
		code = learn_merge(&l->learned, &l->base, l->o);
	if (suffices && l->o->output && write_policy(l, text, e) < 0)
		return say_error(e, l->o->json, EXIT_REFUSED);
	if (suffices && l->o->driver &&
	    l->o->driver->accept(l->o->driver->state, l->o, text, e) < 0)
		return say_error(e, l->o->json, EXIT_REFUSED);
	if (l->o->json)
		put_json(l, suffices ? buf_text(text) : NULL, suffices, &out);
	else if (suffices && !l->o->output && !l->has_base)
		buf_add(&out, text->data, text->len);
	return say_out(&out, code);
}

/* The policy that is added to. Rounds run under it before the operator has seen it, so one that
 * widens the defaults must have been accepted. */
static int read_merge(struct learn *l, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	int r = policy_defaults(&l->base, e);

	if (r < 0)
		return r;
	l->has_base = true;
	l->ways.base = &l->base;
	r = spec_read_accepted(l->o->merge, &l->base, &errors, e);
	if (errors.lines.len) {
		ask_print_errors(&errors);
		r = ward_fail(e, EINVAL, "%.300s has errors", l->o->merge);
	}
	strv_free(&errors.lines);
	return r;
}

/* Where -o writes must be a place to write to, before anything runs. */
static int check_output(const struct options *o, struct ward_err *e)
{
	const char *name = o->output, *slash = strrchr(name, '/');
	auto_free char *dir = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
	struct stat st;

	if (!dir)
		return ward_fail(e, ENOMEM, "out of memory");
	if (lstat(name, &st) < 0) {
		if (errno != ENOENT)
			return ward_fail_errno(e, "cannot create %.300s", name);
		if (!*name || !name[strlen(dir) * (slash != NULL)])
			return ward_fail(e, EISDIR, "-o %.300s: not a file name", name);
		return access(dir, W_OK | X_OK) < 0
			       ? ward_fail_errno(e, "cannot create %.300s", name)
			       : 0;
	}
	if (!S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "-o %.300s: not a regular file", name);
	if (!o->force) {
		ward_fail(e, EEXIST, "%.300s already exists", name);
		return ward_remedy(e, "--merge %.300s adds to it, --force overwrites it", name);
	}
	return access(name, W_OK) < 0 ? ward_fail_errno(e, "cannot write %.300s", name) : 0;
}

/* What would fail in every round, or after all of them. */
static int check_usage(struct learn *l, struct ward_err *e)
{
	struct policy tried = { 0 };
	uint64_t expect = 0;
	int r;

	if (l->o->learn_mcp && !l->o->driver)
		return ward_fail(e, ENOENT,
				 "--mcp needs ward-mcp, which is neither next to ward nor "
				 "in ../libexec/ward");
	if (l->o->name && !l->o->learn_mcp)
		return ward_fail(e, EINVAL, "--name is for --mcp");
	if (l->o->expect && (units_parse_uint(l->o->expect, &expect) < 0 || expect > 255))
		return ward_fail(e, EINVAL, "--expect %.40s: expected an exit status from 0 to 255",
				 l->o->expect);
	l->expect = (int)expect;
	r = policy_defaults(&tried, e);
	for (size_t i = 0; r == 0 && i < l->o->field_count; i++) {
		const struct spec_option *f = &l->o->fields[i];

		r = policy_set(&tried, f->field, f->value, f->append, POLICY_CLI, e);
		if (r < 0)
			ward_wrap(e, "%s", f->option);
	}
	policy_clear(&tried);
	return r == 0 && l->o->output ? check_output(l->o, e) : r;
}

static int begin(struct learn *l, struct ward_err *e)
{
	static const char nothing[] = "version: 1\n";
	auto_buf empty = { 0 };
	const char *home = getenv("HOME");
	int r = l->o->merge ? read_merge(l, e) : 0;

	buf_puts(&empty, nothing);
	l->home = home && *home == '/' ? realpath(home, NULL) : NULL;
	if (r == 0)
		r = workspace_resolve(l->o->workspace ? l->o->workspace : ".", &l->workspace, e);
	if (r == 0)
		r = learn_stop_begin(&l->stop, e);
	l->ways.stop_fd = l->stop.fd;
	if (r == 0 && !l->has_base)
		r = learn_base_write(&l->base_file, &empty, e);
	if (r == 0)
		give_command(l);
	return r;
}

static void end(struct learn *l)
{
	if (l->last.run_id[0] && !l->o->keep_changes)
		learn_forget(l->last.run_id);
	learn_base_clear(&l->base_file);
	learn_stop_end(&l->stop);
	learn_policy_clear(&l->learned);
	learn_ways_clear(&l->ways);
	learn_needs_clear(&l->needs);
	strv_free(&l->withheld);
	if (l->has_base)
		policy_clear(&l->base);
	free(l->home);
	free(l->workspace);
}

int verb_learn(struct options *o)
{
	struct learn l = { .o = o,
			   .ways = { .o = o },
			   .base_file = { .fd = -1 },
			   .stop = { .fd = -1 },
			   .quiet = o->json };
	struct ward_err e = { 0 };
	auto_buf text = { 0 };
	int status = check_usage(&l, &e), code = EXIT_USAGE;

	if (status == 0) {
		status = begin(&l, &e);
		code = EXIT_REFUSED;
	}
	if (status == 0)
		status = learn_rounds(&l, &e);
	if (status > 0)
		status = leave_out(&l, &e);
	if (status > 0)
		status = settle(&l, &text, &e);
	if (status >= 0 && is_stopped(&l)) /* while it asked */
		status = fail_stopped(&l, &e);
	learn_base_clear(&l.base_file);
	learn_stop_end(&l.stop); /* from here on nothing is left behind */
	if (l.stop.signal)
		code = 128 + l.stop.signal;
	code = status < 0 ? say_error(&e, o->json, code) : finish(&l, &text, status > 0, &e);
	end(&l);
	return code;
}
