/*
 * ward image: hands its words to ward-image, which lies beside ward or in its libexec directory and links what ward must not. In: the verb's options, read. Out: that program in place of this one.
 * ward run starts it, too, for an image that is named by the path of an archive and is not in the store yet.
 */
#include "cli/image.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "cli/cli.h"
#include "lib/images.h"

static const char *const places[] = { "ward-image", "../libexec/ward/ward-image", "../image/ward-image" };

/* Becomes ward-image; comes back where there is none. */
static int become(char **argv, struct ward_err *e)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward's own file");
	self[n] = '\0';
	*(strrchr(self, '/') + 1) = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, argv);
	}
	ward_fail(e, ENOENT, "images need ward-image, which is neither beside ward nor in ../libexec/ward");
	return ward_remedy(e, "install ward with all its files (make install)");
}

int verb_image(struct options *o)
{
	struct ward_err e = { 0 };
	auto_strv argv = { 0 };
	const char *const values[] = { "--name", o->name, "--max-size", o->max_size, "--max-files", o->max_files };

	strv_add(&argv, "ward-image");
	strv_add(&argv, o->words[0]);
	for (size_t i = 0; i < ARRAY_LEN(values); i += 2)
		if (values[i + 1]) {
			strv_add(&argv, values[i]);
			strv_add(&argv, values[i + 1]);
		}
	if (o->json)
		strv_add(&argv, "--json");
	if (o->quiet)
		strv_add(&argv, "--quiet");
	strv_add(&argv, "--");
	for (size_t i = 1; i < o->word_count; i++)
		strv_add(&argv, o->words[i]);
	if (argv.failed)
		ward_fail(&e, ENOMEM, "out of memory");
	else
		(void)!become(argv.items, &e);
	return say_error(&e, o->json, EXIT_REFUSED);
}

static int run_import(const char *path, struct ward_err *e)
{
	static char program[] = "ward-image", verb[] = "import", quiet[] = "--quiet", end[] = "--";
	auto_free char *source = strdup(path);
	char *argv[] = { program, verb, quiet, end, source, NULL };
	int status = 0;
	pid_t pid = source ? fork() : -1;

	if (pid == 0) {
		(void)!become(argv, e);
		_exit(say_error(e, false, EXIT_REFUSED));
	}
	if (pid < 0)
		return ward_fail_errno(e, "cannot start ward-image");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return ward_fail(e, EINVAL, "image: %.300s could not be imported, see above", path);
}

int image_prepare(const struct spec *s, struct ward_err *e)
{
	struct ward_err missing = { 0 };
	struct image image;
	int r;

	if (!s->starts || !image_is_path(s->policy.image))
		return 0;
	r = images_open(s->policy.image, &image, &missing);
	if (r == 0)
		image_clear(&image);
	if (r != -ENOENT || access(s->policy.image, F_OK) < 0)
		return 0;	/* whatever is wrong is said by the plan */
	return run_import(s->policy.image, e);
}
