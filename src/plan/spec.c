/*
 * The spec. In: a request from the command line. Out: one policy with the origin of each value,
 * the workspace and the directory to start in, or a refusal. The order is that of spec_build():
 * defaults, profile and --default, file, trust, options, what this build does not do, workspace. A
 * policy file is opened once, read once, and the same bytes are hashed and parsed; a file that was
 * only found in the workspace may have been written by an agent, so if it widens the defaults it
 * needs `ward trust`, and on top of any file an option can only narrow unless --widen is given.
 * Runs in `ward` with the user's rights.
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
#include "plan/wishes.h"
#include "state/images.h"
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
		return e->code == ENOENT ? ward_remedy(e, "ward init writes a starter ward.yaml")
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

static int source_parse(const struct source *s, struct policy *p, struct policy_errors *errors,
			struct ward_err *e)
{
	int r = policy_read(p, s->name, (const uint8_t *)buf_text(&s->bytes), s->bytes.len,
			    POLICY_FILE, errors);

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

/* A found file that allows more than the defaults and the profile, which is base, counts only if
 * the user accepted that content. */
static int check_trust(const struct source *s, const struct policy *base, const struct policy *p,
		       struct ward_err *e)
{
	auto_strv wider = { 0 };
	auto_buf list = { 0 }, shown = { 0 };
	char hex[SHA256_HEX];
	int r = policy_compare_on(base, p, machine_memory(), &wider);

	if (r < 0)
		return ward_fail(e, -r, "cannot compare the policy with the defaults");
	if (r == 0)
		return 0;
	sha256_hex(buf_text(&s->bytes), s->bytes.len, hex);
	r = trust_has(hex, e);
	if (r < 0)
		return r;
	if (r > 0)
		return 0;
	join_lines(&wider, &list);
	text_escape(&shown, s->path);
	ward_fail(e, EACCES, "%.200s %s the defaults: %s", buf_text(&shown),
		  s->found ? "was found, not named with -p, and widens"
			   : "is not accepted and widens",
		  buf_text(&list));
	return ward_remedy(e, "review it, then: ward trust %s", buf_text(&shown));
}

/* base/rest for what a file or an option names; "~/" is the home directory. */
static char *absolute(const char *base, const char *path)
{
	const char *home = getenv("HOME");

	if (strncmp(path, "~/", 2) == 0 && home && *home == '/')
		return path_join(home, path + 2);
	return path_join(base, path);
}

int spec_resolve_mounts(struct policy *p, const char *base, struct ward_err *e)
{
	for (size_t i = 0; i < p->fs_host_mounts.len; i++) {
		struct policy_mount *m = &p->fs_host_mounts.items[i];
		char *path;

		if (*m->path == '/')
			continue;
		path = absolute(base, m->path);
		if (!path)
			return ward_fail(e, ENOMEM, "out of memory");
		free(m->path);
		m->path = path;
	}
	return 0;
}

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int resolve_one(char **path, const char *base, struct ward_err *e)
{
	char *full;

	if (!*path || **path == '/')
		return 0;
	full = absolute(base, *path);
	if (!full)
		return ward_fail(e, ENOMEM, "out of memory");
	free(*path);
	*path = full;
	return 0;
}

/* An image that is named by its path, and the files of recordings. */
static int resolve_single_paths(struct policy *p, enum policy_source source, const char *base,
				struct ward_err *e)
{
	int r = 0;

	if (p->origin[POLICY_F_image].source == source && image_is_path(p->image))
		r = resolve_one(&p->image, base, e);
	if (r == 0 && p->origin[POLICY_F_net_record].source == source)
		r = resolve_one(&p->net_record, base, e);
	if (r == 0 && p->origin[POLICY_F_net_replay].source == source)
		r = resolve_one(&p->net_replay, base, e);
	return r;
}

/* What paths in the policy file are relative to. */
static int resolve_file_paths(struct policy *p, const char *file, struct ward_err *e)
{
	auto_free char *dir = directory_of(file), *workspace = NULL;

	if (!dir)
		return ward_fail(e, ENOMEM, "out of memory");
	if (p->origin[POLICY_F_fs_workspace].source == POLICY_FILE) {
		workspace = absolute(dir, p->fs_workspace);
		if (!workspace)
			return ward_fail(e, ENOMEM, "out of memory");
		free(p->fs_workspace);
		p->fs_workspace = take_ptr(workspace);
	}
	if (resolve_single_paths(p, POLICY_FILE, dir, e) < 0)
		return -e->code;
	return spec_resolve_mounts(p, dir, e);
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
		auto_free char *old = NULL, *new = NULL;
		auto_buf line = { 0 };

		if (p->origin[i].source != POLICY_CLI ||
		    !policy_field_widens(base, p, field, memory))
			continue;
		old = policy_text(base, field);
		new = policy_text(p, field);
		if (!old || !new)
			return ward_fail(e, ENOMEM, "out of memory");
		buf_printf(&line, "%s: %s -> %s", policy_row(field)->path, old, new);
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

static int set_options(const struct spec_request *r, struct policy *p, struct ward_err *e)
{
	for (size_t i = 0; i < r->option_count; i++) {
		const struct spec_option *o = &r->options[i];

		if (o->below)
			continue;
		if (policy_set(p, o->field, o->value, o->append, POLICY_CLI, e) < 0)
			return ward_wrap(e, "%s", o->option);
	}
	/* a host on the command line is a word for a network, too */
	if (p->net_mode == NET_MODE_NONE && p->origin[POLICY_F_net_egress].source == POLICY_CLI &&
	    p->net_egress.len && p->origin[POLICY_F_net_mode].source != POLICY_CLI)
		return policy_set(p, "network.mode", "restricted", false, POLICY_CLI, e);
	return 0;
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

	if (!r->option_count)
		return 0;
	if (checked)
		result = policy_copy(&base, &s->policy, e);
	if (result == 0)
		result = set_options(r, &s->policy, e);
	if (result == 0 && here)
		result = spec_resolve_mounts(&s->policy, here, e);
	if (result == 0 && here)
		result = resolve_single_paths(&s->policy, POLICY_CLI, here, e);
	if (result == 0 && checked)
		result = check_narrowing(r, &base, &s->policy, e);
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
		path = absolute(here, s->policy.fs_workspace);
		result = path ? workspace_resolve(path, &s->workspace, e)
			      : ward_fail(e, ENOMEM, "out of memory");
	} else if (!s->workspace) {
		result = default_workspace(r, here, NULL, &s->workspace, e);
	}
	if (result == 0)
		result = check_workspace(r, s, e);
	return result < 0 ? result : workspace_cwd(s->workspace, here, r->cwd, &s->cwd, e);
}

/* What the profile asks for and the file does not give, in one line: an agent that finds no network
 * does not say why. */
static int note_overridden(const struct source *file, struct spec *s, const struct policy *profile,
			   struct ward_err *e)
{
	auto_buf fields = { 0 }, note = { 0 };
	uint64_t memory = machine_memory();
	const char *off = "";

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		enum policy_field f = (enum policy_field)i;

		if (profile->origin[i].source != POLICY_PROFILE ||
		    s->policy.origin[i].source != POLICY_FILE ||
		    !policy_field_widens(&s->policy, profile, f, memory))
			continue;
		buf_printf(&fields, "%s%s", fields.len ? ", " : "", policy_row(f)->path);
		if (f == POLICY_F_net_mode && s->policy.net_mode == NET_MODE_NONE)
			off = ", so it has no network";
	}
	if (!fields.len)
		return 0;
	text_escape(&note, file->name);
	buf_printf(&note,
		   " gives less than the profile %s asks for (%s)%s; remove those lines from the "
		   "file, or run with -p FILE",
		   s->profile, buf_text(&fields), off);
	strv_add(&s->said, buf_text(&note));
	return s->said.failed || note.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Reads the file over the defaults and the profile. */
static int read_over(const struct source *file, struct spec *s, struct policy_errors *errors,
		     struct ward_err *e)
{
	struct policy base = { 0 };
	int result = file->found || s->profile ? policy_copy(&base, &s->policy, e) : 0;

	if (result == 0)
		result = source_parse(file, &s->policy, errors, e);
	if (result == 0 && file->found)
		result = check_trust(file, &base, &s->policy, e);
	if (result == 0 && s->profile)
		result = note_overridden(file, s, &base, e);
	policy_clear(&base);
	return result;
}

/* The policy file: the one named, or the one found where the workspace would be. */
static int load_file(const struct spec_request *r, struct spec *s, const char *here,
		     struct policy_errors *errors, struct ward_err *e)
{
	auto_source file = { 0 };
	int result;

	if (r->policy_file) {
		result = source_open(r->policy_file, &file, e);
	} else {
		result = default_workspace(r, here, &s->said, &s->workspace, e);
		if (result == 0)
			result = source_find(s->workspace,
					     r->workspace                      ? r->workspace
					     : strcmp(s->workspace, here) != 0 ? s->workspace
									       : NULL,
					     &file, e);
	}
	if (result < 0 || !file.path)
		return result;
	result = read_over(&file, s, errors, e);
	if (result == 0)
		result = resolve_file_paths(&s->policy, file.path, e);
	if (result == 0)
		s->policy_file = take_ptr(file.path);
	return result;
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
	if (result == 0 && r->profile)
		result = profile_apply(r->profile, s, errors, e);
	if (result == 0)
		result = set_below(r, s, here, e);
	if (result == 0)
		result = load_file(r, s, here, errors, e);
	if (result == 0)
		result = apply_options(r, s, here, e);
	if (result == 0 && (r->profile || s->below))
		result = wishes_settle(s, e);
	if (result == 0)
		result = check_supported(&s->policy, e);
	if (result == 0)
		result = find_workspace(r, s, here, e);
	if (result == 0 && s->profile_file)
		result = profile_check_place(s, e);
	return result;
}

int spec_build(const struct spec_request *r, struct spec *ret_spec, struct policy_errors *errors,
	       struct ward_err *e)
{
	struct spec s = { .argv = r->argv,
			  .restore = r->restore,
			  .progress = r->progress,
			  .starts = r->starts,
			  .own_env = r->own_env,
			  .tty = r->tty,
			  .observe = r->observe,
			  .image_command = r->image_command,
			  .cwd_given = r->cwd != NULL };
	int result = build(r, &s, errors, e);

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
	*s = (struct spec){ 0 };
}

int spec_read_policy(const char *path, struct policy *p, struct policy_errors *errors,
		     struct ward_err *e)
{
	auto_source file = { 0 };
	int r = source_open(path, &file, e);

	return r < 0 ? r : source_parse(&file, p, errors, e);
}

int spec_read_accepted(const char *path, struct policy *p, struct policy_errors *errors,
		       struct ward_err *e)
{
	auto_source file = { 0 };
	struct policy base = { 0 };
	int r = source_open(path, &file, e);

	if (r == 0)
		r = source_parse(&file, p, errors, e);
	if (r == 0)
		r = policy_defaults(&base, e);
	if (r == 0)
		r = check_trust(&file, &base, p, e);
	policy_clear(&base);
	return r;
}

int spec_trust_content(const char *path, struct strv *wider, struct policy_errors *errors,
		       char *ret_hex, struct ward_err *e)
{
	auto_source file = { 0 };
	struct policy base = { 0 }, p = { 0 };
	int r = source_open(path, &file, e);

	if (r == 0)
		r = policy_defaults(&base, e);
	if (r == 0)
		r = policy_defaults(&p, e);
	if (r == 0)
		r = source_parse(&file, &p, errors, e);
	if (r == 0) {
		r = policy_compare_on(&base, &p, machine_memory(), wider);
		r = r < 0 ? ward_fail(e, -r, "cannot compare the policy with the defaults") : 0;
	}
	policy_clear(&base);
	policy_clear(&p);
	if (r < 0)
		return r;
	sha256_hex(buf_text(&file.bytes), file.bytes.len, ret_hex);
	return trust_add(ret_hex, file.path, e);
}
