/*
 * An image as the root. In: what the policy's `image` says. Out: the tree that the engine puts
 * under everything else, the users that it knows, and its wishes as far as the policy lets them:
 * variables below the policy's own, a command where the caller gave none, its directory for that
 * command alone. The agent is uid 1000 whatever user the image names. Runs in the supervisor with
 * the user's rights; nothing of the image is executed or followed out of its tree.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "base/path.h"
#include "host/idmap.h"
#include "plan/inner.h"
#include "plan/plan.h"
#include "plan/plan_reach.h"
#include "state/images.h"

#define USERS_BYTES_MAX 65536

/* Whether the id in the third field of a line of passwd or group is one that ward's own lines have,
 * or the line is none. */
static bool is_usable(const char *line, size_t n, unsigned fields)
{
	unsigned colons = 0, id = 0;
	size_t digits = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c < 0x20 || c == 0x7f)
			return false;
		colons += c == ':';
		if (colons == 2 && c >= '0' && c <= '9' && digits++ < 9)
			id = id * 10 + (unsigned)(c - '0');
	}
	return n && line[0] != ':' && colons == fields - 1 && digits && digits < 9 && id != 0 &&
	       id != 1000 && id != 65534 && strncmp(line, "agent:", 6) != 0;
}

/* ward's own lines, and behind them the image's: programs look their users up by name. */
static char *merge_users(const char *own, const char *text, unsigned fields)
{
	auto_buf out = { 0 };

	buf_puts(&out, own);
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (is_usable(text, n, fields))
			buf_printf(&out, "%.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
	return buf_take(&out);
}

static int add_users(struct plan_system *system, int root_fd)
{
	static const struct {
		const char *target, *path;
		unsigned fields;
	} rows[] = { { "/etc/passwd", "etc/passwd", 7 }, { "/etc/group", "etc/group", 4 } };

	for (size_t i = 0; i < system->mount_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
			struct ward_err unused = { 0 };
			auto_buf text = { 0 };
			auto_fd fd = -1;

			if (strcmp(system->mounts[i].target, rows[k].target) != 0)
				continue;
			fd = path_open_nolink(root_fd, rows[k].path,
					      O_RDONLY | O_NONBLOCK | O_NOCTTY, &unused);
			if (fd < 0 || io_read_all(fd, USERS_BYTES_MAX, &text) < 0)
				/* a root without users, or with more than a sandbox needs */
				continue;
			strv_take(&system->strings, merge_users(system->mounts[i].source,
								buf_text(&text), rows[k].fields));
			if (system->strings.failed)
				return -ENOMEM;
			system->mounts[i].source = system->strings.items[system->strings.len - 1];
		}
	return 0;
}

static int check_place(const struct plan *p, struct ward_err *e)
{
	const char *value = p->spec->policy.image;
	auto_free char *here = NULL, *path = NULL;

	if (image_is_path(value)) {
		here = *value == '/' ? strdup("/") : realpath(".", NULL);
		path = here ? path_join(here, value) : NULL;
		if (!path)
			return ward_fail(e, ENOMEM, "out of memory");
		if (plan_reach_way(p, "image", path, p->image.root, e) < 0)
			return -e->code;
	}
	if (strcmp(p->image.root, "/") == 0) {
		ward_fail(e, EINVAL, "image: / would expose the whole host");
		return ward_remedy(e, "remove image: the default, host, mounts only the system's "
				      "own directories");
	}
	return 0;
}

int plan_open_image(struct plan *p, struct ward_err *e)
{
	struct plan_image *image;
	auto_fd root = -1;
	struct stat st;
	int r;

	if (strcmp(p->spec->policy.image, "host") == 0)
		return 0;
	r = images_open(p->spec->policy.image, &p->image, e);
	if (r == 0 && p->image.lock_fd >= 0 && plan_keep_lock(p, &p->image.lock_fd) < 0)
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = check_place(p, e);
	if (r == 0 && p->spec->inner && p->spec->inner->own_root)
		return 0;
	if (r == 0)
		r = plan_system_bare(&p->facts, &p->own_system, e);
	if (r < 0)
		return r;
	root = open(p->image.root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 || fstat(root, &st) < 0)
		return ward_fail_errno(e, "image: cannot open %s", p->image.root);
	image = calloc(1, sizeof(*image));
	if (!image || add_users(p->own_system, root) < 0) {
		free(image);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	*image = (struct plan_image){
		.root = p->image.root, .dev = st.st_dev, .ino = st.st_ino, .tree_fd = -1
	};
	p->own_system->image = image;
	if (p->image.user)
		strv_addf(&p->notes, "the image sets the user %s, but the agent is always uid 1000",
			  p->image.user);
	return 0;
}

/* Before Linux 5.19 an overlay could not be made of id-mapped mounts. */
static bool can_map(void)
{
	unsigned major = 0, minor = 0;
	struct utsname host;

	return uname(&host) == 0 && sscanf(host.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 19));
}

int plan_place_image(struct plan *p, struct ward_err *e)
{
	struct plan_image *image = p->own_system ? p->own_system->image : NULL;

	if (!image || p->facts.uid != 0)
		return 0;
	image->tree_fd = idmap_clone_tree(image->root, image->dev, image->ino, e);
	if (image->tree_fd == -EPERM && p->ids.mode == IDS_ROOT) {
		image->tree_fd = -1; /* uid 0 gets there by itself */
		return 0;
	}
	if (image->tree_fd < 0)
		return image->tree_fd;
	/* a user that may not be mapped sees the same files as another user's: every user may read
	 * them */
	image->mapped = p->ids.mode == IDS_MAPPED && can_map() &&
			idmap_apply(image->tree_fd, 0, 0, p->ids.host_uid, p->ids.host_gid) == 0;
	return 0;
}

bool plan_image_has(const struct plan *p, const char *path)
{
	auto_fd root = p->image.root ? open(p->image.root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1,
		fd = -1;
	struct ward_err unused = { 0 };

	if (root >= 0)
		fd = path_open_nolink(root, path[1] ? path + 1 : ".", O_PATH | O_DIRECTORY,
				      &unused);
	return fd >= 0;
}

/* Whether anything at all lies at that path of the image. */
static bool is_taken(const struct plan *p, const char *path)
{
	auto_fd root = open(p->image.root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct ward_err e = { 0 };

	if (root < 0)
		return true;
	fd = path_open_nolink(root, path + 1, O_PATH, &e);
	return fd >= 0 || e.code != ENOENT;
}

int plan_choose_command(struct plan *p, struct ward_err *e)
{
	auto_free char *dir = NULL;

	p->argv = p->spec->argv;
	if (!p->spec->image_command)
		return 0;
	if (!p->image.command.len) {
		ward_fail(e, EINVAL,
			  p->image.root ? "no command given, and the image has none"
					: "no command given");
		return ward_remedy(e, "put it behind --, for instance: ward run -- make test");
	}
	p->argv = p->image.command.items;
	if (p->spec->cwd_given || !p->image.workdir)
		return 0;
	dir = *p->image.workdir == '/' ? path_clean(p->image.workdir)
				       : path_join("/", p->image.workdir);
	if (!dir)
		return ward_fail(e, ENOMEM, "out of memory");
	strv_add(&p->strings, dir);
	if (p->strings.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (dir[1] && p->own_system && !is_taken(p, dir))
		p->own_system->image->workdir = p->strings.items[p->strings.len - 1];
	p->cwd = take_ptr(dir);
	return 0;
}

void plan_seal_image(struct plan *p)
{
	struct plan_image *image = p->own_system ? p->own_system->image : NULL;

	if (!image)
		return;
	/* links and files of ward's own are made before the image is put under them: nothing is
	 * made in the image's directories */
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_LINK || p->mounts[i].kind == MOUNT_FILE)
			p->mounts[i].system = true;
	image->points = p->mounts;
	image->point_count = p->mount_count;
}
