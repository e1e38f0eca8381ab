/*
 * From a source to a tree. In: a file (a tar archive of a root, docker's or OCI's archive of an
 * image) or a directory (an OCI layout, or a root). Out: root, config and owners in the target
 * directory, and a digest. Runs in the confined worker. Everything of the source is checked against
 * the digest that names it; what has none of its own gets the digest of its content.
 */
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"
#include "image/hash.h"
#include "image/layer.h"

#define INDEX_DEPTH_MAX 4

/* Opens a regular file beneath the directory. */
static int open_file(int dir_fd, const char *path, struct ward_err *e)
{
	auto_fd fd = tree_open(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return ward_fail(e, -fd, "cannot open %s: %s", path, strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "%s is not a regular file", path);
	return take_fd(&fd);
}

static bool has_file(int dir_fd, const char *path)
{
	struct ward_err unused = { 0 };
	auto_fd fd = open_file(dir_fd, path, &unused);

	return fd >= 0;
}

static int read_small(int dir_fd, const char *path, struct buf *out, struct ward_err *e)
{
	auto_fd fd = open_file(dir_fd, path, e);
	int r;

	if (fd < 0)
		return fd;
	r = io_read_all(fd, MANIFEST_BYTES_MAX, out);
	return r < 0 ? ward_fail(e, -r, "cannot read %s: %s", path,
				 r == -EFBIG ? "it has more than 1 MiB" : strerror(-r))
		     : 0;
}

static void digest_of(const struct buf *bytes, char ret_hex[DIGEST_HEX])
{
	struct hash h;

	hash_begin(&h);
	hash_add(&h, buf_text(bytes), bytes->len);
	hash_end(&h, ret_hex);
}

static void blob_path(const struct descriptor *d, char path[96])
{
	snprintf(path, 96, "blobs/sha256/%s", d->digest);
}

/* A blob that is JSON: read as a whole, its digest checked. */
static int read_blob(int dir_fd, const struct descriptor *d, struct buf *out, struct ward_err *e)
{
	char path[96], digest[DIGEST_HEX];
	int r;

	blob_path(d, path);
	r = read_small(dir_fd, path, out, e);
	if (r < 0)
		return r;
	digest_of(out, digest);
	if (out->len != d->bytes || strcmp(digest, d->digest) != 0)
		return ward_fail(
			e, EBADMSG,
			"%s has the digest sha256:%s and %zu bytes, which do not match its name",
			path, digest, out->len);
	return 0;
}

/* -- what an image wishes */

static void put(struct buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	buf_printf(out, "%s %s", key, value);
	buf_add(out, "", 1);
}

int unpack_write_config(int target_fd, const struct image_wish *w, struct ward_err *e)
{
	auto_fd fd =
		openat(target_fd, UNPACK_CONFIG, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	auto_buf out = { 0 };
	int r;

	for (size_t i = 0; i < w->env.len; i++)
		put(&out, "env", w->env.items[i]);
	for (size_t i = 0; i < w->entrypoint.len; i++)
		put(&out, "entrypoint", w->entrypoint.items[i]);
	for (size_t i = 0; i < w->cmd.len; i++)
		put(&out, "cmd", w->cmd.items[i]);
	put(&out, "user", w->user);
	put(&out, "workdir", w->workdir);
	r = fd < 0 ? -errno : out.failed ? -ENOMEM : io_write_all(fd, buf_text(&out), out.len);
	return r < 0 ? ward_fail(e, -r, "cannot write the image's configuration: %s", strerror(-r))
		     : 0;
}

/* -- layers */

static int begin_tree(const struct unpack_job *job, struct unpacked *out, struct tree *t,
		      int *ret_root, int *ret_owners, struct ward_err *e)
{
	if (mkdirat(job->target_fd, UNPACK_ROOT, 0755) < 0)
		return ward_fail_errno(e, "cannot make the directory of the image");
	*ret_root = openat(job->target_fd, UNPACK_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret_owners = openat(job->target_fd, UNPACK_OWNERS,
			     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (*ret_root < 0 || *ret_owners < 0)
		return ward_fail_errno(e, "cannot make the directory of the image");
	out->count = (struct tree_count){ 0 };
	tree_begin(t, *ret_root, *ret_owners, &out->count, job->max_bytes, job->max_entries);
	return 0;
}

/* The layers of an image, from the oldest on; names are paths in dir_fd. blobs: what each must be,
 * NULL: only its diff_id is known. */
static int apply_layers(const struct unpack_job *job, int dir_fd, const struct strv *names,
			const struct descriptor *blobs, const struct strv *diff_ids,
			struct unpacked *out, struct ward_err *e)
{
	auto_fd root = -1, owners = -1;
	struct tree t = { .parent_fd = -1 };
	int r;

	if (names->len != diff_ids->len)
		return ward_fail(e, EINVAL, "the image has %zu layers, its configuration names %zu",
				 names->len, diff_ids->len);
	r = begin_tree(job, out, &t, &root, &owners, e);
	for (size_t i = 0; i < names->len && r == 0; i++) {
		char want[DIGEST_HEX], diff_id[DIGEST_HEX];
		auto_fd fd = open_file(dir_fd, names->items[i], e);
		struct layer_source s = { .fd = fd,
					  .blob = blobs ? &blobs[i] : NULL,
					  .diff_id = want };

		r = fd < 0 ? fd : digest_read(diff_ids->items[i], want, e);
		if (r == 0)
			r = layer_apply(&t, &s, diff_id, e);
		if (r < 0)
			ward_wrap(e, "layer %zu of %zu", i + 1, names->len);
		tree_next_layer(&t);
	}
	if (r == 0)
		return tree_end(&t, e);
	tree_free(&t);
	return r;
}

static void keep_name(struct unpacked *out, const char *name)
{
	if (name && strlen(name) < sizeof(out->name))
		memcpy(out->name, name, strlen(name) + 1);
}

/* -- an OCI layout */

static int find_manifest(int dir_fd, const char *wanted, struct unpacked *out,
			 struct descriptor *ret, struct ward_err *e)
{
	auto_buf bytes = { 0 };
	bool nested = true;
	int r = read_small(dir_fd, "index.json", &bytes, e);

	for (int depth = 0; r == 0 && nested; depth++) {
		auto_free char *name = NULL;

		if (depth == INDEX_DEPTH_MAX)
			return ward_fail(e, ELOOP, "more than %d nested indexes", INDEX_DEPTH_MAX);
		if (depth) {
			buf_free(&bytes);
			r = read_blob(dir_fd, ret, &bytes, e);
		}
		if (r == 0)
			r = manifest_read_index((const uint8_t *)buf_text(&bytes), bytes.len,
						depth ? NULL : wanted, ret, &nested, &name, e);
		keep_name(out, name);
	}
	return r;
}

static int unpack_layout(const struct unpack_job *job, int dir_fd, struct unpacked *out,
			 struct ward_err *e)
{
	struct image_wish wish = { 0 };
	struct layers layers = { 0 };
	struct descriptor manifest;
	auto_strv diff_ids = { 0 }, names = { 0 };
	auto_buf manifest_bytes = { 0 }, config = { 0 };
	int r = find_manifest(dir_fd, job->wanted, out, &manifest, e);

	if (r == 0)
		r = read_blob(dir_fd, &manifest, &manifest_bytes, e);
	if (r == 0)
		r = manifest_read((const uint8_t *)buf_text(&manifest_bytes), manifest_bytes.len,
				  &layers, e);
	if (r == 0)
		r = read_blob(dir_fd, &layers.config, &config, e);
	if (r == 0)
		r = manifest_read_config((const uint8_t *)buf_text(&config), config.len, &wish,
					 &diff_ids, e);
	for (size_t i = 0; i < layers.len && r == 0; i++) {
		char path[96];

		blob_path(&layers.items[i], path);
		strv_add(&names, path);
	}
	if (r == 0)
		r = apply_layers(job, dir_fd, &names, layers.items, &diff_ids, out, e);
	if (r == 0)
		r = unpack_write_config(job->target_fd, &wish, e);
	if (r == 0)
		memcpy(out->digest, manifest.digest, DIGEST_HEX);
	image_wish_clear(&wish);
	free(layers.items);
	return r;
}

/* -- docker's archive */

static int clean_names(const struct docker_image *image, struct strv *names,
		       char config[ENTRY_PATH_MAX], struct ward_err *e)
{
	const char *wrong = entry_read_link(image->config, strlen(image->config), config);
	char path[ENTRY_PATH_MAX];

	for (size_t i = 0; i < image->layers.len && !wrong; i++) {
		wrong = entry_read_link(image->layers.items[i], strlen(image->layers.items[i]),
					path);
		if (!wrong)
			strv_add(names, path);
	}
	if (wrong)
		return ward_fail(e, EINVAL, "manifest.json names a file of the archive: %s", wrong);
	return names->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int unpack_docker(const struct unpack_job *job, int dir_fd, const struct docker_image *image,
			 struct unpacked *out, struct ward_err *e)
{
	struct image_wish wish = { 0 };
	auto_strv names = { 0 }, diff_ids = { 0 };
	auto_buf config = { 0 };
	char path[ENTRY_PATH_MAX];
	int r = clean_names(image, &names, path, e);

	if (r == 0)
		r = read_small(dir_fd, path, &config, e);
	if (r == 0)
		r = manifest_read_config((const uint8_t *)buf_text(&config), config.len, &wish,
					 &diff_ids, e);
	if (r == 0)
		r = apply_layers(job, dir_fd, &names, NULL, &diff_ids, out, e);
	if (r == 0)
		r = unpack_write_config(job->target_fd, &wish, e);
	digest_of(&config, out->digest);
	if (image->tags.len)
		keep_name(out, image->tags.items[0]);
	image_wish_clear(&wish);
	return r;
}

/* -- a tar archive: a root, or an image in which a root is */

/* 1: what was unpacked is docker's archive of *ret. */
static int is_docker(const struct unpack_job *job, int root_fd, struct docker_image *ret,
		     struct ward_err *e)
{
	auto_buf bytes = { 0 };
	int r;

	if (!has_file(root_fd, "manifest.json") ||
	    faccessat(root_fd, "bin", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = read_small(root_fd, "manifest.json", &bytes, e);
	if (r == 0)
		r = manifest_read_docker((const uint8_t *)buf_text(&bytes), bytes.len, job->wanted,
					 ret, e);
	return r < 0 ? r : 1;
}

static int unpack_inner(const struct unpack_job *job, const struct docker_image *image,
			struct unpacked *out, struct ward_err *e)
{
	auto_fd outer = -1;
	int r;

	if (renameat(job->target_fd, UNPACK_ROOT, job->target_fd, UNPACK_OUTER) < 0)
		return ward_fail_errno(e, "cannot store a copy of the archive");
	outer = openat(job->target_fd, UNPACK_OUTER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (outer < 0)
		return ward_fail_errno(e, "cannot open the copy of the archive");
	r = image ? unpack_docker(job, outer, image, out, e) : unpack_layout(job, outer, out, e);
	if (r < 0)
		return r;
	r = tree_remove(job->target_fd, UNPACK_OUTER);
	return r < 0 ? ward_fail(e, -r, "cannot remove the copy of the archive: %s", strerror(-r))
		     : 0;
}

static int unpack_archive(const struct unpack_job *job, struct unpacked *out, struct ward_err *e)
{
	const struct layer_source s = { .fd = job->source_fd };
	const struct image_wish nothing = { 0 };
	struct docker_image image = { 0 };
	struct tree t = { .parent_fd = -1 };
	auto_fd root = -1, owners = -1;
	int r = begin_tree(job, out, &t, &root, &owners, e);

	if (r == 0)
		r = layer_apply(&t, &s, out->digest, e);
	if (r == 0)
		r = tree_end(&t, e);
	tree_free(&t);
	if (r < 0)
		return r;
	if (has_file(root, "oci-layout") && has_file(root, "index.json"))
		return unpack_inner(job, NULL, out, e);
	r = is_docker(job, root, &image, e);
	if (r > 0)
		r = unpack_inner(job, &image, out, e);
	else if (r == 0)
		r = unpack_write_config(job->target_fd, &nothing, e);
	docker_image_clear(&image);
	return r;
}

/* The same files that wish for something else are another image. */
static int add_config_digest(const struct unpack_job *job, char digest[DIGEST_HEX],
			     struct ward_err *e)
{
	auto_buf bytes = { 0 };
	int r;

	buf_puts(&bytes, digest);
	r = read_small(job->target_fd, UNPACK_CONFIG, &bytes, e);
	if (r == 0)
		digest_of(&bytes, digest);
	return r;
}

static int unpack_dir(const struct unpack_job *job, struct unpacked *out, struct ward_err *e)
{
	const struct image_wish nothing = { 0 }, *wish = job->wish ? job->wish : &nothing;
	struct tree t = { .parent_fd = -1 };
	auto_fd root = -1, owners = -1;
	int r;

	if (!job->wish && has_file(job->source_fd, "oci-layout"))
		return unpack_layout(job, job->source_fd, out, e);
	r = begin_tree(job, out, &t, &root, &owners, e);
	if (r == 0)
		r = copy_dir(&t, job->source_fd, out->digest, e);
	if (r == 0)
		r = tree_end(&t, e);
	tree_free(&t);
	if (r == 0)
		r = unpack_write_config(job->target_fd, wish, e);
	if (r == 0 && job->wish)
		r = add_config_digest(job, out->digest, e);
	return r;
}

int unpack_work(const struct unpack_job *job, struct unpacked *out, struct ward_err *e)
{
	return job->is_dir ? unpack_dir(job, out, e) : unpack_archive(job, out, e);
}
