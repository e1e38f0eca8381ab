/*
 * The spec. In: a request from the command line. Out: one policy with the origin of each value, the
 * workspace and the directory to start in, or a refusal. The order is that of build(): defaults,
 * the user's own (user_config.c), profile and --default, what the file extends (spec_layers.c),
 * file, trust, options, what this build does not do, workspace. A policy file is opened once, read
 * once, and the same bytes are hashed and parsed; a file that was only found in the workspace may
 * have been written by an agent, and so may any file there that another one extends: if they widen
 * the defaults, they need `ward trust`. On top of any file an option can only narrow unless --widen
 * is given. Runs in `ward` with the user's rights.
 */
#include "plan/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/profile.h"
#include "plan/project.h"
#include "plan/spec_imply.h"
#include "plan/spec_watch.h"
#include "plan/spec_layers.h"
#include "plan/spec_source.h"
#include "plan/wishes.h"
#include "state/images.h"
#include "state/store.h"
#include "state/trust.h"

#define POLICY_BYTES_MAX (1024 * 1024)

static const char found_names[][12] = { "ward.yaml", "ward.json" };
static const char misspelt_name[] = "ward.yml";

/* A policy file that was read. */
struct source {
	char *name; /* for messages */
	char *path; /* absolute */
	struct buf bytes;
	bool found; /* in the workspace, not named by the operator */
};

static void source_clear(struct source *s)
{
	free(s->name);
	free(s->path);
	buf_free(&s->bytes);
	*s = (struct source){ 0 };
}

#define auto_source __attribute__((cleanup(source_clear))) struct source

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

/* Reads an open policy file; anything but a regular file of sane size is refused before a byte is
 * read. */
static int read_bytes(int fd, const char *shown, struct buf *bytes, struct ward_err *e)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot look at %s", shown);
	if (!S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "%s is not a regular file", shown);
	if (st.st_size > POLICY_BYTES_MAX)
		return ward_fail(e, EFBIG, "%s is larger than 1 MiB, too large for a policy",
				 shown);
	r = io_read_all(fd, POLICY_BYTES_MAX, bytes);
	return r < 0 ? ward_fail(e, -r, "cannot read %s: %s", shown, strerror(-r)) : 0;
}

static int source_open(const char *path, struct source *ret, struct ward_err *e)
{
	auto_buf shown = { 0 };
	auto_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	text_escape(&shown, path);
	if (fd < 0) {
		r = ward_fail_errno(e, "cannot open the policy file %s", buf_text(&shown));
		return e->code == ENOENT
			       ? ward_remedy(e,
					     "check its path; ward init writes a starter ward.yaml")
			       : r;
	}
	r = read_bytes(fd, buf_text(&shown), &ret->bytes, e);
	if (r < 0)
		return r;
	ret->name = strdup(path);
	ret->path = realpath(path, NULL);
	return ret->name && ret->path ? 0
				      : ward_fail_errno(e, "cannot resolve %s", buf_text(&shown));
}

/* Opens name in the directory; a link must stay within it. -ENOENT without *e when there is
 * none. */
static int open_found(int dir_fd, const char *name, struct ward_err *e)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return -ENOENT;
	if (errno != ELOOP)
		return ward_fail_errno(e, "cannot open the workspace's %s", name);
	fd = path_open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, e);
	if (fd >= 0)
		return fd;
	ward_fail(e, EPERM,
		  "the workspace's %s is a link that is broken or leads out of the workspace",
		  name);
	return ward_remedy(e, "name the file directly: -p FILE");
}

static int source_fill(struct source *s, const char *dir, const char *given_dir, const char *name)
{
	s->found = true;
	s->path = path_join(dir, name);
	if (given_dir && asprintf(&s->name, "%s/%s", given_dir, name) < 0)
		s->name = NULL;
	if (!given_dir)
		s->name = strdup(name);
	return s->path && s->name ? 0 : -ENOMEM;
}

/* Looks for a policy in the directory. s->path stays NULL when there is none. */
static int source_find(const char *dir, const char *given_dir, struct source *s, struct ward_err *e)
{
	auto_fd dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r;

	if (dir_fd < 0)
		return ward_fail_errno(e, "cannot open the workspace");
	for (size_t i = 0; i < ARRAY_LEN(found_names); i++) {
		auto_fd fd = open_found(dir_fd, found_names[i], e);

		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		if (s->path) {
			ward_fail(e, EEXIST, "the workspace has both a ward.yaml and a ward.json");
			return ward_remedy(e, "remove one of them, or name one with -p FILE");
		}
		r = read_bytes(fd, found_names[i], &s->bytes, e);
		if (r < 0)
			return r;
		if (source_fill(s, dir, given_dir, found_names[i]) < 0)
			return ward_fail(e, ENOMEM, "out of memory");
	}
	if (!s->path && fstatat(dir_fd, misspelt_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		ward_fail(e, EINVAL, "the workspace has a %s, which ward does not read",
			  misspelt_name);
		return ward_remedy(e, "rename it to ward.yaml, or name it with -p %s",
				   misspelt_name);
	}
	return 0;
}

int spec_open_policy(const char *path, struct buf *bytes, char **ret_real, struct ward_err *e)
{
	auto_source file = { 0 };
	int r = source_open(path, &file, e);

	if (r < 0)
		return r;
	*bytes = file.bytes;
	file.bytes = (struct buf){ 0 };
	*ret_real = take_ptr(file.path);
	return 0;
}

int spec_parse(struct policy *p, const char *name, const struct buf *bytes,
	       enum policy_source source, struct policy_errors *errors, struct ward_err *e)
{
	int r = policy_read(p, name, (const uint8_t *)buf_text(bytes), bytes->len, source, errors);

	if (r == -EINVAL)
		return ward_fail(e, EINVAL, "the policy file has %zu errors", errors->lines.len);
	return r < 0 ? ward_fail(e, -r, "cannot read the policy file: %s", strerror(-r)) : 0;
}

/* Joins what fits of the lines into one message. */
static void join_lines(const struct strv *lines, struct buf *out)
{
	for (size_t i = 0; i < lines->len; i++) {
		auto_buf line = { 0 };

		text_escape(&line, lines->items[i]);
		if (i && out->len + line.len > 500) {
			buf_printf(out, "; and %zu more", lines->len - i);
			break;
		}
		buf_printf(out, "%s%.500s", i ? "; " : "", buf_text(&line));
	}
}

/* What the files allow beyond base: the defaults, the user's own, and the profile that the user
 * named. */
static int find_wider(const struct policy *base, struct spec *s, struct ward_err *e)
{
	int r = policy_compare_on(base, &s->policy, machine_memory(), &s->wider);

	return r < 0 ? ward_fail(e, -r, "cannot compare the policy with the defaults") : 0;
}

/* Files that allow more than the user said elsewhere count only if the user accepted that
 * content. */
static int check_trust(const struct spec *s, const char *path, const char *how, struct ward_err *e)
{
	auto_buf list = { 0 }, shown = { 0 };
	int r = s->wider.len ? trust_has(s->digest, e) : 1;

	if (r != 0)
		return r < 0 ? r : 0;
	join_lines(&s->wider, &list);
	text_escape(&shown, path);
	ward_fail(e, EACCES, "%.200s %s the defaults: %s", buf_text(&shown), how, buf_text(&list));
	return ward_remedy(e, "review it, then: ward trust %s", buf_text(&shown));
}

/* The names of the options that set this field, " (--memory)". */
static void name_options(const struct spec_request *r, const char *field, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < r->option_count; i++) {
		if (strcmp(r->options[i].field, field) != 0)
			continue;
		buf_printf(out, "%s%s", any ? ", " : " (", r->options[i].option);
		any = true;
	}
	buf_puts(out, any ? ")" : "");
}

/* On top of a file options only narrow: every one that does not is named. */
static int check_narrowing(const struct spec_request *r, const struct policy *base,
			   const struct policy *p, struct ward_err *e)
{
	uint64_t memory = machine_memory();
	auto_strv wider = { 0 };
	auto_buf list = { 0 };

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		enum policy_field field = (enum policy_field)i;
		auto_free char *difference = NULL;
		auto_buf line = { 0 };

		if (p->origin[i].source != POLICY_CLI ||
		    !policy_field_widens(base, p, field, memory))
			continue;
		difference = policy_difference(base, p, field);
		if (!difference)
			return ward_fail(e, ENOMEM, "out of memory");
		buf_puts(&line, difference);
		name_options(r, policy_row(field)->path, &line);
		strv_add(&wider, buf_text(&line));
	}
	if (wider.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!wider.len)
		return 0;
	join_lines(&wider, &list);
	ward_fail(e, EACCES, "options can only narrow a policy file, but these widen it: %s",
		  buf_text(&list));
	return ward_remedy(e, "change the file, or add --widen");
}

/* Some fields are for policy files only. */
static int check_for_options(const struct spec_option *o, struct ward_err *e)
{
	if (strcmp(o->field, "profile") != 0 && strcmp(o->field, "extends") != 0)
		return 0;
	ward_fail(e, EINVAL, "%s %s: this field is for policy files", o->option, o->field);
	return ward_remedy(e, "--profile NAME, or -p FILE with a file that has it");
}

static int set_options(const struct spec_request *r, struct policy *p, struct ward_err *e)
{
	if (r->isolation && policy_set(p, "isolation", r->isolation, false, POLICY_CLI, e) < 0)
		return ward_wrap(e, "WARD_ISOLATION");
	for (size_t i = 0; i < r->option_count; i++) {
		const struct spec_option *o = &r->options[i];

		if (o->below)
			continue;
		if (check_for_options(o, e) < 0)
			return -e->code;
		if (policy_set(p, o->field, o->value, o->append, POLICY_CLI, e) < 0)
			return ward_wrap(e, "%s", o->option);
	}
	return spec_imply_reach(r, p, e);
}

/* --default: what the caller puts beside the profile. */
static int set_below(const struct spec_request *r, struct spec *s, const char *here,
		     struct ward_err *e)
{
	for (size_t i = 0; i < r->option_count; i++) {
		const struct spec_option *o = &r->options[i];

		if (!o->below)
			continue;
		s->below = true;
		if (check_for_options(o, e) < 0)
			return -e->code;
		if (policy_set(&s->policy, o->field, o->value, false, POLICY_PROFILE, e) < 0)
			return ward_wrap(e, "%s", o->option);
	}
	if (s->below && wishes_note_metered(s, e) < 0)
		return -e->code;
	return s->below && here ? spec_resolve_mounts(&s->policy, here, e) : 0;
}

static int apply_options(const struct spec_request *r, struct spec *s, const char *here,
			 struct ward_err *e)
{
	bool checked = s->policy_file && !r->widen;
	struct policy base = { 0 };
	int result = 0;

	if (!r->option_count && !r->isolation)
		return 0;
	if (checked)
		result = policy_copy(&base, &s->policy, e);
	if (result == 0)
		result = set_options(r, &s->policy, e);
	if (result == 0 && here)
		result = spec_resolve_mounts(&s->policy, here, e);
	if (result == 0 && here)
		result = spec_resolve_single(&s->policy, POLICY_CLI, here, e);
	if (result == 0 && checked)
		result = check_narrowing(r, &base, &s->policy, e);
	spec_note_loopback(r, &s->said);
	policy_clear(&base);
	return result;
}

static int check_supported(const struct policy *p, struct ward_err *e)
{
	auto_strv lines = { 0 };
	auto_buf list = { 0 };
	int r = policy_unsupported(p, &lines);

	if (r < 0)
		return ward_fail(e, -r, "out of memory");
	if (r == 0)
		return 0;
	join_lines(&lines, &list);
	return ward_fail(e, ENOTSUP, "%s", buf_text(&list));
}

/* -w on top of a file that names the workspace: only a directory inside it. */
static int check_workspace(const struct spec_request *r, const struct spec *s, struct ward_err *e)
{
	auto_free char *resolved = NULL;
	auto_buf shown = { 0 };
	const char *limit = s->policy.fs_workspace;

	if (!r->workspace || r->widen ||
	    s->policy.origin[POLICY_F_fs_workspace].source != POLICY_FILE)
		return 0;
	resolved = realpath(limit, NULL);
	if (path_is_beneath(s->workspace, resolved ? resolved : limit))
		return 0;
	text_escape(&shown, limit);
	ward_fail(e, EACCES, "the policy file's workspace is %s, but -w names another directory",
		  buf_text(&shown));
	return ward_remedy(e, "change the file, or add --widen");
}

/* What the workspace is without a word of the policy: -w, or the project where the caller stands,
 * or that directory itself. said: NULL where a policy file was named: none is looked for. */
static int default_workspace(const struct spec_request *r, const char *here, struct strv *said,
			     char **ret_path, struct ward_err *e)
{
	int result;

	if (r->workspace)
		return workspace_resolve(r->workspace, ret_path, e);
	result = workspace_check(here, e); /* the kernel's word needs no resolving */
	if (result == 0 && said)
		result = project_find(here, ret_path, said, e);
	if (result < 0 || *ret_path)
		return result;
	*ret_path = strdup(here);
	return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static int find_workspace(const struct spec_request *r, struct spec *s, const char *here,
			  struct ward_err *e)
{
	bool named =
		!r->workspace && s->policy.origin[POLICY_F_fs_workspace].source != POLICY_DEFAULT;
	auto_free char *path = NULL;
	int result = 0;

	if (named) {
		free(take_ptr(s->workspace));
		path = spec_absolute(here, s->policy.fs_workspace);
		result = path ? workspace_resolve(path, &s->workspace, e)
			      : ward_fail(e, ENOMEM, "out of memory");
	} else if (!s->workspace) {
		result = default_workspace(r, here, NULL, &s->workspace, e);
	}
	if (result == 0)
		result = check_workspace(r, s, e);
	return result < 0 ? result : workspace_cwd(s->workspace, here, r->cwd, &s->cwd, e);
}

/* -- reading the file over the rest */

static bool mentions(const struct buf *bytes, const char *word)
{
	return memmem(buf_text(bytes), bytes->len, word, strlen(word)) != NULL;
}

/* A file that builds on nothing else, read without looking twice. */
static int read_alone(const struct source *file, struct spec *s, struct policy_errors *errors,
		      struct ward_err *e)
{
	int r;

	strv_add(&s->files, file->name);
	if (s->files.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	s->policy.file = (unsigned)s->files.len;
	r = spec_parse(&s->policy, file->name, &file->bytes, POLICY_FILE, errors, e);
	if (r == 0 && (s->policy.origin[POLICY_F_profile].source == POLICY_FILE ||
		       s->policy.origin[POLICY_F_extends].source == POLICY_FILE))
		r = ward_fail(e, EINVAL, "%.300s: write profile and extends without escapes",
			      file->name);
	if (r == 0)
		sha256_hex(buf_text(&file->bytes), file->bytes.len, s->digest);
	return r;
}

/* --profile beside a file that names another one. */
static int check_profiles(const struct spec *s, const struct layers *l, bool widen,
			  struct ward_err *e)
{
	if (widen || !s->profile || !l->profile || strcmp(l->profile, s->profile) == 0)
		return 0;
	ward_fail(e, EACCES, "the policy file builds on the profile %.64s, --profile names %.64s",
		  l->profile, s->profile);
	return ward_remedy(e, "leave --profile out, or add --widen to replace the file's");
}

/* What the user would have without a word of the file: the default profile. */
static int apply_default_profile(const char *name, struct spec *s, struct policy_errors *errors,
				 struct ward_err *e)
{
	auto_free char *copy = NULL;

	if (s->profile)
		return 0; /* --profile */
	if (!name)
		name = s->policy.profile;
	copy = name ? strdup(name) : NULL;
	if (name && !copy)
		return ward_fail(e, ENOMEM, "out of memory");
	return name ? profile_apply(copy, s, errors, e) : 0;
}

/* Whether it may: a word in a comment costs no more than a second look. */
static bool builds_on_others(const struct source *file)
{
	return mentions(&file->bytes, "profile") || mentions(&file->bytes, "extends");
}

/* Reads the file, and what it builds on, over the defaults and the profile; *base (the caller
 * clears; NULL: not wanted) is what the policy was without it. Paths in the file itself stay
 * relative. profile: the user's default one, NULL: none but that of s->policy. */
static int read_over(const struct source *file, const char *profile, bool widen, struct spec *s,
		     struct policy *base, struct policy_errors *errors, struct ward_err *e)
{
	bool alone = !builds_on_others(file);
	auto_layers l = { 0 };
	int r = 0;

	if (!alone)
		r = layers_gather(&l, file->name, file->path, &file->bytes, errors, e);
	if (r == 0)
		r = check_profiles(s, &l, widen, e);
	if (r == 0 && !l.profile_said)
		r = apply_default_profile(profile, s, errors, e);
	if (r == 0 && base)
		r = policy_copy(base, &s->policy, e);
	if (r == 0 && l.profile && !s->profile)
		r = profile_apply(l.profile, s, errors, e);
	if (r < 0)
		return r;
	return alone ? read_alone(file, s, errors, e) : layers_apply(&l, s, errors, e);
}

/* The policy file: the one named, or the one found where the workspace would be. */
static int open_file(const struct spec_request *r, struct spec *s, const char *here,
		     struct source *file, struct ward_err *e)
{
	int result;

	if (r->policy_file)
		return source_open(r->policy_file, file, e);
	result = default_workspace(r, here, &s->said, &s->workspace, e);
	if (result < 0)
		return result;
	return source_find(s->workspace,
			   r->workspace                      ? r->workspace
			   : strcmp(s->workspace, here) != 0 ? s->workspace
							     : NULL,
			   file, e);
}

static int load_file(const struct spec_request *r, struct spec *s, const char *here,
		     struct policy_errors *errors, struct ward_err *e)
{
	auto_source file = { 0 };
	auto_free char *dir = NULL;
	struct policy base = { 0 };
	bool compared;
	int result = open_file(r, s, here, &file, e);

	if (result < 0)
		return result;
	if (!file.path)
		return apply_default_profile(r->default_profile, s, errors, e);
	compared = file.found || r->policy_unnamed || s->profile || r->default_profile ||
		   s->policy.profile || builds_on_others(&file);
	result = read_over(&file, r->default_profile, r->widen, s, compared ? &base : NULL, errors,
			   e);
	if (result == 0 && s->profile && compared)
		result = wishes_note_overridden(s, file.name, &base, machine_memory(), e);
	if (result == 0 && r->policy_unnamed)
		strv_add(&s->unnamed_files, file.path);
	if (result == 0 && (file.found || s->unnamed_files.len))
		result = find_wider(&base, s, e);
	if (result == 0 && file.found)
		result = check_trust(s, file.path, "was found, not named with -p, and widens", e);
	dir = result == 0 ? spec_directory_of(file.path) : NULL;
	if (result == 0)
		result = dir ? spec_resolve_paths(&s->policy, POLICY_FILE, dir, e)
			     : ward_fail(e, ENOMEM, "out of memory");
	if (result == 0)
		s->policy_file = take_ptr(file.path);
	policy_clear(&base);
	return result;
}

/* What an agent could have written counts neither as the user's own word nor, unless it was
 * accepted, as part of a file that was named. */
static int check_places(const struct spec *s, struct ward_err *e)
{
	for (size_t i = 0; i < s->own_files.len; i++) {
		if (!path_is_beneath(s->own_files.items[i], s->workspace))
			continue;
		ward_fail(e, EACCES,
			  "%.300s is in the workspace, where an agent may have written it",
			  s->own_files.items[i]);
		return ward_remedy(e, "work on a copy elsewhere, or set XDG_CONFIG_HOME");
	}
	for (size_t i = 0; i < s->unnamed_files.len; i++)
		if (path_is_beneath(s->unnamed_files.items[i], s->workspace))
			return check_trust(s, s->policy_file,
					   "uses a file in the workspace that was not named with "
					   "-p, and widens",
					   e);
	return s->profile_file ? profile_check_place(s, e) : 0;
}

static int build(const struct spec_request *r, struct spec *s, struct policy_errors *errors,
		 struct ward_err *e)
{
	auto_free char *here = NULL;
	int result = workspace_here(&here, e);

	/* a directory that was deleted matters only where something is relative to it */
	if (result < 0 && !(r->workspace && *r->workspace == '/'))
		return result;
	result = policy_defaults(&s->policy, e);
	if (result == 0)
		result = user_config_apply(s, errors, e);
	if (result == 0 && r->profile)
		result = profile_apply(r->profile, s, errors, e);
	if (result == 0)
		result = set_below(r, s, here, e);
	if (result == 0)
		result = load_file(r, s, here, errors, e);
	if (result == 0)
		result = apply_options(r, s, here, e);
	if (result == 0 && (s->profile || s->below))
		result = wishes_settle(s, e);
	if (result == 0)
		result = spec_count_costs(s, e);
	if (result == 0)
		result = spec_watch(s, e);
	if (result == 0)
		result = check_supported(&s->policy, e);
	if (result == 0)
		result = find_workspace(r, s, here, e);
	return result < 0 ? result : check_places(s, e);
}

int spec_build(const struct spec_request *r, struct spec *ret_spec, struct policy_errors *errors,
	       struct ward_err *e)
{
	struct spec s = { .argv = r->argv,
			  .restore = r->restore,
			  .progress = r->progress,
			  .starts = r->starts,
			  .own_env = r->own_env,
			  .parent = r->parent && store_id_ns(r->parent) ? r->parent : NULL,
			  .channel = r->channel,
			  .tool = r->tool,
			  .tty = r->tty,
			  .observe = r->observe,
			  .widened = r->widen,
			  .image_command = r->image_command,
			  .cwd_given = r->cwd != NULL,
			  .continued = r->continued != NULL };
	int result = build(r, &s, errors, e);

	if (r->continued)
		snprintf(s.run_id, sizeof(s.run_id), "%s", r->continued);
	else
		store_new_id(s.run_id, sizeof(s.run_id));
	if (result < 0)
		spec_clear(&s);
	else
		*ret_spec = s;
	return result;
}

void spec_clear(struct spec *s)
{
	policy_clear(&s->policy);
	free(s->policy_file);
	free(s->profile);
	free(s->profile_file);
	free(s->workspace);
	free(s->cwd);
	strv_free(&s->notes);
	strv_free(&s->metered);
	strv_free(&s->said);
	strv_free(&s->files);
	strv_free(&s->own_files);
	strv_free(&s->unnamed_files);
	strv_free(&s->wider);
	*s = (struct spec){ 0 };
}

/* -- a policy file alone, without a run */

/* Reads it over *p, which may be anything; *base is what *p was, with the default profile. */
static int read_file(const char *path, struct spec *s, struct policy *p, struct source *file,
		     struct policy *base, struct policy_errors *errors, struct ward_err *e)
{
	int r = file->path ? 0 : source_open(path, file, e);

	s->policy = *p;
	if (r == 0)
		r = read_over(file, NULL, false, s, base, errors, e);
	*p = s->policy;
	s->policy = (struct policy){ 0 };
	return r;
}

int spec_read_files(const char *path, struct policy *p, struct strv *files,
		    struct policy_errors *errors, struct ward_err *e)
{
	auto_source file = { 0 };
	struct policy base = { 0 };
	struct spec s = { 0 };
	int r = read_file(path, &s, p, &file, &base, errors, e);

	for (size_t i = 0; r == 0 && files && i < s.files.len; i++)
		strv_add(files, s.files.items[i]);
	policy_clear(&base);
	spec_clear(&s);
	return r == 0 && files && files->failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

int spec_read_policy(const char *path, struct policy *p, struct policy_errors *errors,
		     struct ward_err *e)
{
	return spec_read_files(path, p, NULL, errors, e);
}

int spec_read_accepted(const char *path, struct policy *p, struct policy_errors *errors,
		       struct ward_err *e)
{
	auto_source file = { 0 };
	struct policy base = { 0 };
	struct spec s = { 0 };
	int r = read_file(path, &s, p, &file, &base, errors, e);

	if (r == 0) {
		s.policy = *p;
		r = find_wider(&base, &s, e);
		s.policy = (struct policy){ 0 };
	}
	if (r == 0)
		r = check_trust(&s, file.path, "is not accepted and widens", e);
	policy_clear(&base);
	spec_clear(&s);
	return r;
}

void spec_content_clear(struct spec_content *c)
{
	free(c->path);
	buf_free(&c->text);
	strv_free(&c->wider);
	*c = (struct spec_content){ 0 };
}

static int read_content(struct source *file, struct spec_content *ret, struct policy_errors *errors,
			struct ward_err *e)
{
	struct policy base = { 0 }, p = { 0 };
	auto_layers l = { 0 };
	struct spec s = { 0 };
	int r = policy_defaults(&p, e);

	if (r == 0)
		r = read_file(NULL, &s, &p, file, &base, errors, e);
	if (r == 0)
		r = layers_gather(&l, file->name, file->path, &file->bytes, errors, e);
	if (r == 0) {
		r = policy_compare_on(&base, &p, machine_memory(), &ret->wider);
		r = r < 0 ? ward_fail(e, -r, "cannot compare the policy with the defaults") : 0;
	}
	if (r == 0) {
		/* of what was gathered last, so that digest and text are of the same bytes */
		layers_digest(&l, ret->hex);
		layers_text(&l, &ret->text);
		if (strcmp(ret->hex, s.digest) != 0)
			r = ward_fail(e, EAGAIN,
				      "%.300s, or a file that it extends, was changed "
				      "meanwhile; try again",
				      file->name);
	}
	policy_clear(&base);
	policy_clear(&p);
	spec_clear(&s);
	return r == 0 && ret->text.failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

int spec_content_read(const char *path, const struct buf *bytes, struct spec_content *ret,
		      struct policy_errors *errors, struct ward_err *e)
{
	auto_source file = { 0 };
	int r = 0;

	if (bytes) {
		file.name = strdup(path);
		file.path = strdup(path);
		buf_add(&file.bytes, buf_text(bytes), bytes->len);
		if (!file.name || !file.path || file.bytes.failed)
			r = ward_fail(e, ENOMEM, "out of memory");
	} else {
		r = source_open(path, &file, e);
	}
	if (r == 0)
		r = read_content(&file, ret, errors, e);
	if (r == 0)
		ret->path = take_ptr(file.path);
	if (r < 0)
		spec_content_clear(ret);
	return r;
}

int spec_content_accept(const struct spec_content *c, struct ward_err *e)
{
	return trust_keep(c->hex, c->path, &c->text, e);
}
