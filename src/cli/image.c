/*
 * ward image: ward-image (src/image) does its work. In: the verb's options, read. Out: that program
 * in place of this one. ward run starts it, too, for an image that is named by the path of an
 * archive and is not in the store yet.
 */
#include "cli/image.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/hand_over.h"
#include "host/program.h"
#include "state/images.h"

int verb_image(struct options *o)
{
	const struct handed options[] = { { "--name", o->name, false },
					  { "--max-size", o->max_size, false },
					  { "--max-files", o->max_files, false } };

	return hand_over(o, "ward-image", options, ARRAY_LEN(options));
}

static int run_import(const char *path, struct ward_err *e)
{
	static char program[] = "ward-image", verb[] = "import", quiet[] = "--quiet", end[] = "--";
	auto_free char *source = strdup(path);
	char *argv[] = { program, verb, quiet, end, source, NULL };
	int status = 0;
	pid_t pid = source ? fork() : -1;

	if (pid == 0) {
		(void)!program_become(argv, e);
		_exit(say_error(e, false, EXIT_REFUSED));
	}
	if (pid < 0)
		return ward_fail_errno(e, "cannot start ward-image");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return ward_fail(e, EINVAL, "image: cannot import %.300s, see above", path);
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
		return 0; /* the plan reports whatever is wrong */
	return run_import(s->policy.image, e);
}
