/*
 * ward image build: an image from a recipe. In: a file of YAML (recipe.c). Out: an image in the
 * store. The base's tree is copied into the store's work directory, the recipe's files are put into
 * it, packages are installed (packages.c), and each command runs in a sandbox of its own (step.c),
 * without a network. What came of that is then imported like any stranger's directory: by the
 * confined worker, without set-id bits and devices.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/walk.h"
#include "image/image.h"
#include "image/recipe.h"
#include "image/step.h"
#include "image/store.h"
#include "state/store.h"

#define RECIPE_BYTES_MAX (1024 * 1024)

struct build {
	const struct image_options *o;
	struct recipe recipe;
	struct work work;
	char *dir;           /* of the recipe, absolute */
	char *root;          /* of the new tree, absolute */
	char *workspace;     /* of the steps, absolute, empty */
	int dir_fd, root_fd; /* -1: not yet */
};

/* Directories that commands expect. */
static const char *const made_dirs[] = { "bin", "etc", "opt", "srv", "usr", "var", "root" };

static int read_recipe(struct build *b, const char *path, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	auto_free char *real = realpath(path, NULL);
	auto_buf bytes = { 0 };
	int r = real ? io_read_file(AT_FDCWD, real, RECIPE_BYTES_MAX, &bytes) : -errno;

	if (r < 0)
		return ward_fail(e, -r, "cannot read the recipe %.300s: %s", path, strerror(-r));
	r = recipe_read(path, (const uint8_t *)buf_text(&bytes), bytes.len, &b->recipe, &errors);
	if (r < 0) {
		auto_buf all = { 0 };

		for (size_t i = 0; i < errors.lines.len && all.len < 600; i++)
			buf_printf(&all, "%s%s", i ? "; " : "", errors.lines.items[i]);
		ward_fail(e, EINVAL, "%.700s", errors.lines.len ? buf_text(&all) : "out of memory");
	}
	strv_free(&errors.lines);
	if (r < 0)
		return r;
	b->dir = path_join(real, "..");
	b->dir_fd = b->dir ? open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return b->dir_fd < 0 ? ward_fail_errno(e, "cannot open the directory of the recipe") : 0;
}

/* What the base wishes counts where the recipe says nothing. */
static void inherit(struct build *b, const struct image *base)
{
	struct image_wish *w = &b->recipe.wish;
	auto_strv own = w->env;

	w->env = (struct strv){ 0 };
	for (size_t i = 0; i < base->env.len; i++)
		strv_add(&w->env, base->env.items[i]);
	for (size_t i = 0; i < own.len; i++)
		strv_add(&w->env, own.items[i]);
	for (size_t i = 0; i < base->command.len && !w->cmd.len && i == w->entrypoint.len; i++)
		strv_add(&w->entrypoint, base->command.items[i]);
	if (!w->workdir && base->workdir)
		w->workdir = strdup(base->workdir);
	if (!w->user && base->user)
		w->user = strdup(base->user);
}

static int copy_base(struct build *b, struct ward_err *e)
{
	struct progress shown, *progress = progress_for_terminal(&shown, !b->o->json);
	struct unpack_job job = { .is_dir = true,
				  .target_fd = b->work.fd,
				  .max_bytes = b->o->max_bytes,
				  .max_entries = b->o->max_entries,
				  .progress = progress };
	struct unpacked copied;
	struct image base;
	auto_fd root = -1;
	int r;

	if (strcmp(b->recipe.from, "scratch") == 0)
		return mkdirat(b->work.fd, UNPACK_ROOT, 0755) < 0
			       ? ward_fail_errno(e, "cannot make the root")
			       : 0;
	r = images_open(b->recipe.from, &base, e);
	if (r < 0)
		return ward_wrap(e, "from");
	root = open(base.root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	job.source_fd = root;
	r = root < 0 ? ward_fail_errno(e, "cannot open the base image")
		     : unpack_run(&job, &copied, e);
	progress_end(progress);
	inherit(b, &base);
	image_clear(&base);
	return r;
}

static int open_root(struct build *b, struct ward_err *e)
{
	auto_free char *state = NULL;
	auto_buf path = { 0 };
	int r = state_dir_path(&state, e);

	if (r < 0)
		return r;
	buf_printf(&path, "%s/%s/%s/%s", state, IMAGES_DIR, b->work.name, UNPACK_ROOT);
	b->root = realpath(buf_text(&path), NULL);
	b->root_fd = b->root ? open(b->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (b->root_fd < 0)
		return ward_fail_errno(e, "cannot open the new root");
	for (size_t i = 0; i < ARRAY_LEN(made_dirs); i++)
		if (mkdirat(b->root_fd, made_dirs[i], 0755) < 0 && errno != EEXIST)
			return ward_fail_errno(e, "cannot make /%s", made_dirs[i]);
	return 0;
}

/* The workspace is seen inside at its own path. Beside the new root, unless one of the new tree's
 * directories is mounted over that: root's state directory lies in /var, and no image has that
 * path. */
static int make_workspace(struct build *b, struct ward_err *e)
{
	auto_free char *beside = path_join(b->root, "../workspace");
	char outside[WORK_OUTSIDE_MAX];

	if (!beside)
		return ward_fail(e, ENOMEM, "out of memory");
	work_outside(b->work.name, outside);
	b->workspace = strdup(step_covers(b->root_fd, beside) ? outside : beside);
	if (!b->workspace)
		return ward_fail(e, ENOMEM, "out of memory");
	if (mkdir(b->workspace, 0755) < 0) {
		ward_fail_errno(e, "cannot make the directory %s", b->workspace);
		return ward_remedy(
			e,
			"make /tmp world-writable, or move the state directory (WARD_STATE_DIR)");
	}
	return 0;
}

/* Whatever modes the steps left: an image keeps none, and its tree is read by the process that
 * builds it, who need not be root. */
static int open_up(unused_arg void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	unsigned needed = entry->type == DT_DIR ? 0700 : 0400;
	struct stat st;

	if (entry->type != DT_DIR && entry->type != DT_REG)
		return 0;
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((st.st_mode & needed) != needed &&
	    fchmodat(d->fd, entry->name, (st.st_mode & 07777) | needed, 0) < 0)
		return -errno;
	return entry->type == DT_DIR;
}

static int import_root(struct build *b, struct imported *ret, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = open_up };
	int r = walk_tree(b->root_fd, &ops, NULL, 0, e);

	if (r < 0 && !e->why[0])
		ward_fail(e, -r, "cannot make the files of a step accessible: %s", strerror(-r));
	return r < 0 ? r : import_tree(b->o, b->root_fd, &b->recipe.wish, b->dir, ret, e);
}

/* Through no link that leads out of the recipe's directory, and into the new root alone. */
static int add_file(struct build *b, struct tree *t, const struct recipe_file *f,
		    struct ward_err *e)
{
	auto_fd from = path_open_beneath(b->dir_fd, f->from, O_RDONLY | O_NONBLOCK | O_NOCTTY, e);
	int r = from < 0 ? from : copy_into(t, from, f->to, e);

	return r < 0 ? ward_wrap(e, "files: %s", f->from) : 0;
}

/* Before packages are installed only what tells the package manager where from: no process that
 * answers there shall see the user's own files. */
static bool is_for_packages(const struct recipe_file *f)
{
	return path_is_beneath(f->to, "etc/apt") || path_is_beneath(f->to, "usr/share/keyrings");
}

static int add_files(struct build *b, bool for_packages, struct ward_err *e)
{
	struct tree_count count = { 0 };
	struct tree t;
	int r = 0;

	tree_begin(&t, b->root_fd, -1, &count, b->o->max_bytes, b->o->max_entries);
	for (size_t i = 0; i < b->recipe.file_count && r == 0; i++)
		if (is_for_packages(&b->recipe.files[i]) == for_packages)
			r = add_file(b, &t, &b->recipe.files[i], e);
	tree_free(&t);
	return r;
}

/* The packages first: what a command uses may come with them. */
static int install(struct build *b, struct ward_err *e)
{
	const struct strv none = { 0 };
	struct step step = {
		.root = b->root, .root_fd = b->root_fd, .workspace = b->workspace, .env = &none
	};

	return b->recipe.packages.len ? packages_install(&step, &b->recipe.packages, e) : 0;
}

static int run_steps(const struct build *b, struct ward_err *e)
{
	struct step step = { .root = b->root,
			     .root_fd = b->root_fd,
			     .workspace = b->workspace,
			     .dir = b->dir,
			     .env = &b->recipe.wish.env };
	int r = 0;

	for (size_t i = 0; i < b->recipe.run.len && r == 0; i++) {
		auto_strv words = { 0 };

		strv_add(&words, "/bin/sh");
		strv_add(&words, "-ec");
		strv_add(&words, b->recipe.run.items[i]);
		r = step_run(&step, NULL, &words, e);
		if (r > 0)
			r = ward_fail(e, EINVAL, "run: exit status %d of: %.300s", r,
				      b->recipe.run.items[i]);
	}
	return r;
}

static int build(struct build *b, struct imported *ret, struct ward_err *e)
{
	int r = copy_base(b, e);

	if (r == 0)
		r = open_root(b, e);
	if (r == 0)
		r = make_workspace(b, e);
	if (r == 0)
		r = add_files(b, true, e);
	if (r == 0)
		r = install(b, e);
	if (r == 0)
		r = add_files(b, false, e);
	if (r == 0)
		r = run_steps(b, e);
	if (r == 0)
		r = import_root(b, ret, e);
	return r;
}

int image_build(const struct image_options *o)
{
	struct build b = { .o = o, .dir_fd = -1, .root_fd = -1 };
	struct imported i = { 0 };
	struct ward_err e = { 0 };
	int r;

	if (o->count != 1) {
		ward_fail(&e, EINVAL, "build takes one recipe");
		ward_remedy(&e, "ward image build RECIPE --name NAME");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	r = read_recipe(&b, o->words[0], &e);
	if (r == 0)
		r = work_begin(&b.work, &e);
	if (r == 0) {
		r = build(&b, &i, &e);
		work_end(&b.work);
	}
	own_close_fd(&b.dir_fd);
	own_close_fd(&b.root_fd);
	free(b.dir);
	free(b.root);
	free(b.workspace);
	recipe_clear(&b.recipe);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : import_say(o, &i);
}
