/*
 * ward image import: a file or directory of the host's becomes an image. In: a path, with ":NAME"
 * behind it where it holds several, or "-" for standard input. Out: an image in the store. This
 * process opens the source and keeps the store; what is in the source is read by the worker alone.
 * A name that an archive gives itself is used only where it is free: no archive can take the place
 * of an image that the user knows.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/text.h"
#include "image/image.h"
#include "image/store.h"
#include "policy/units.h"

/* Gives it the name that was asked for, or its own if that is free. */
static int name_it(const struct image_options *o, struct imported *i, struct ward_err *e)
{
	const char *name = o->name ? o->name : i->what.name;
	int r;

	if (!*name || (!o->name && !image_name_is_valid(name)))
		return 0;
	r = images_set_name(name, i->what.digest, !o->name, e);
	if (r == -EEXIST) {
		i->name_taken = true;
		r = 0;
	} else if (r == 0) {
		snprintf(i->name, sizeof(i->name), "%s", name);
	}
	return r;
}

static int import_job(const struct image_options *o, struct unpack_job job, const char *source,
		      const char *key, struct imported *ret, struct ward_err *e)
{
	struct progress shown, *progress = progress_for_terminal(&shown, !o->json);
	struct work w;
	int r;

	if (o->name && !image_name_is_valid(o->name))
		return images_set_name(o->name, "", false, e); /* says what is wrong with it */
	r = work_begin(&w, e);
	if (r < 0)
		return r;
	job.target_fd = w.fd;
	job.max_bytes = o->max_bytes;
	job.max_entries = o->max_entries;
	job.progress = progress;
	r = unpack_run(&job, &ret->what, e);
	progress_end(progress);
	if (r == 0)
		r = work_describe(&w, source, ret->what.count.bytes, ret->what.count.entries, e);
	if (r == 0)
		r = work_commit(&w, ret->what.digest, e);
	work_end(&w);
	if (r == 0)
		r = name_it(o, ret, e);
	if (r == 0 && key)
		r = images_set_source(key, ret->what.digest, e);
	return r;
}

int import_fd(const struct image_options *o, int fd, bool is_dir, const char *wanted,
	      const char *source, const char *key, struct imported *ret, struct ward_err *e)
{
	return import_job(
		o, (struct unpack_job){ .source_fd = fd, .is_dir = is_dir, .wanted = wanted },
		source, key, ret, e);
}

int import_tree(const struct image_options *o, int fd, const struct image_wish *wish,
		const char *source, struct imported *ret, struct ward_err *e)
{
	return import_job(o, (struct unpack_job){ .source_fd = fd, .is_dir = true, .wish = wish },
			  source, NULL, ret, e);
}

static void say_json(const struct imported *i, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "digest", i->what.digest);
	json_string(&j, "name", i->name[0] ? i->name : NULL);
	json_uint(&j, "files", i->what.count.entries);
	json_uint(&j, "bytes", i->what.count.bytes);
	json_uint(&j, "skipped", i->what.count.skipped);
	json_uint(&j, "set_id_dropped", i->what.count.set_id);
	json_end_object(&j);
	buf_puts(out, "\n");
}

int import_say(const struct image_options *o, const struct imported *i)
{
	auto_buf out = { 0 };
	char size[32];

	if (o->quiet)
		return EXIT_FINE;
	if (o->json) {
		say_json(i, &out);
		return say_out(&out, EXIT_FINE);
	}
	units_format_size(i->what.count.bytes, size, sizeof(size));
	buf_printf(&out, "sha256:%s%s%s: %llu files, %s\n", i->what.digest, i->name[0] ? " " : "",
		   i->name, (unsigned long long)i->what.count.entries, size);
	if (i->what.count.skipped)
		buf_printf(&out, "  left out: %llu devices, pipes and sockets\n",
			   (unsigned long long)i->what.count.skipped);
	if (i->what.count.set_id)
		buf_printf(&out, "  set-id bits dropped: %llu files\n",
			   (unsigned long long)i->what.count.set_id);
	if (i->name_taken) {
		buf_puts(&out, "  it calls itself ");
		text_escape(&out, i->what.name);
		buf_puts(
			&out,
			", which is the name of another image: --name gives it that name anyway\n");
	}
	return say_out(&out, EXIT_FINE);
}

/* Opens SOURCE or, where there is no such thing, what stands before its first ":"; *ret_wanted is
 * what stands behind it. */
static int open_source(const char *source, char **ret_path, const char **ret_wanted,
		       struct ward_err *e)
{
	const char *colon = strchr(source, ':');
	int fd = open(source, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	*ret_wanted = NULL;
	*ret_path = strdup(source);
	if (fd < 0 && errno == ENOENT && colon && colon != source) {
		free(*ret_path);
		*ret_path = strndup(source, (size_t)(colon - source));
		*ret_wanted = colon + 1;
		fd = *ret_path ? open(*ret_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	}
	if (fd >= 0 && *ret_path)
		return fd;
	own_close_fd(&fd);
	ward_fail_errno(e, "cannot open %.300s", source);
	return ward_remedy(e, "a directory, a tar archive, an OCI layout or docker's archive; ward "
			      "image pull gets one from a registry");
}

static int import_path(const struct image_options *o, const char *source, struct imported *i,
		       struct ward_err *e)
{
	auto_free char *path = NULL, *real = NULL;
	const char *wanted;
	auto_fd fd = open_source(source, &path, &wanted, e);
	char key[SHA256_HEX];
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return ward_fail(e, EINVAL, "%.300s is neither a directory nor a regular file",
				 source);
	real = realpath(path, NULL);
	if (!real)
		return ward_fail_errno(e, "cannot resolve %.300s", source);
	image_source_key(real, &st, key);
	return import_fd(o, fd, S_ISDIR(st.st_mode), wanted, real, wanted ? NULL : key, i, e);
}

int image_import(const struct image_options *o)
{
	struct imported i = { 0 };
	struct ward_err e = { 0 };
	int r;

	if (o->count != 1) {
		ward_fail(&e, EINVAL, "ward image import takes one source, not %zu",
			  (size_t)o->count);
		ward_remedy(&e, "ward image import FILE|DIR|- [--name NAME]");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	r = strcmp(o->words[0], "-") == 0
		    ? import_fd(o, STDIN_FILENO, false, NULL, "standard input", NULL, &i, &e)
		    : import_path(o, o->words[0], &i, &e);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : import_say(o, &i);
}
