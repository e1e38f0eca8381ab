/*
 * ward image pull: an image from a registry. In: a name, or a source in skopeo's words (docker://,
 * oci:, docker-archive:, dir:). Out: an image in the store. skopeo fetches it, with the user's
 * rights, credentials and network, into an OCI layout in the store's work directory; what it
 * fetched is then imported like any other layout: every digest is checked again, and the worker
 * unpacks it. skopeo is the system's own, whatever stands in PATH (which it has, for helpers that
 * know credentials); there is no shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "host/program.h"
#include "image/image.h"
#include "image/store.h"
#include "state/store.h"

static const char *const transports[] = { "docker://",       "oci:", "oci-archive:",
					  "docker-archive:", "dir:", "containers-storage:",
					  "docker-daemon:" };

static bool has_transport(const char *source)
{
	for (size_t i = 0; i < ARRAY_LEN(transports); i++)
		if (strncmp(source, transports[i], strlen(transports[i])) == 0)
			return true;
	return false;
}

static int run_skopeo(const struct image_options *o, const char *source, const char *dir,
		      struct ward_err *e)
{
	auto_buf target = { 0 };
	const char *argv[] = { "skopeo",  "copy",
			       "--quiet", "--override-os",
			       "linux",   "--override-arch",
			       "amd64",   source,
			       NULL,      NULL,
			       NULL };
	char program[PATH_MAX];
	int status = 0;
	pid_t pid;

	if (program_find_system("skopeo", program, e) < 0)
		return ward_remedy(e, "apt-get install skopeo; or save the image elsewhere (docker "
				      "save, podman save) and: ward image import FILE");
	buf_printf(&target, "oci:%s/layout:pulled", dir);
	argv[8] = buf_text(&target);
	if (access("/etc/containers/policy.json", R_OK) < 0)
		argv[9] = "--insecure-policy"; /* there is no policy of signatures to go by */
	if (!o->json && !o->quiet && isatty(STDERR_FILENO))
		argv[2] = "--preserve-digests"; /* and it shows its own progress */
	pid = fork();
	if (pid == 0) {
		if (argv[2][2] == 'p')
			dup2(STDERR_FILENO, STDOUT_FILENO);
		setenv("TMPDIR", dir, 1);
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(126);
	}
	if (pid < 0)
		return ward_fail_errno(e, "cannot start skopeo");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	ward_fail(e, EIO, "skopeo could not get %.300s", source);
	return ward_remedy(e, "its output above shows why; skopeo login REGISTRY adds credentials");
}

static int pull(const struct image_options *o, const char *source, struct imported *i,
		struct ward_err *e)
{
	auto_free char *state = NULL;
	auto_buf dir = { 0 };
	auto_fd layout = -1;
	struct work w;
	int r = state_dir_path(&state, e);

	if (r == 0)
		r = work_begin(&w, e);
	if (r < 0)
		return r;
	buf_printf(&dir, "%s/%s/%s", state, IMAGES_DIR, w.name);
	r = dir.failed ? ward_fail(e, ENOMEM, "out of memory")
		       : run_skopeo(o, source, buf_text(&dir), e);
	if (r == 0) {
		layout = openat(w.fd, "layout", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = layout < 0 ? ward_fail_errno(e, "skopeo left no image")
			       : import_fd(o, layout, true, NULL, source, NULL, i, e);
	}
	work_end(&w);
	return r;
}

int image_pull(const struct image_options *o)
{
	struct image_options named = *o;
	struct imported i = { 0 };
	struct ward_err e = { 0 };
	auto_buf source = { 0 };

	if (o->count != 1) {
		ward_fail(&e, EINVAL, "pull takes one name");
		ward_remedy(&e, "ward image pull NAME[:TAG] [--name NAME]");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (*o->words[0] == '-' ||
	    (!has_transport(o->words[0]) && !image_name_is_valid(o->words[0]))) {
		ward_fail(&e, EINVAL, "%.200s is not the name of an image", o->words[0]);
		ward_remedy(&e, "REGISTRY/NAME:TAG, or one of skopeo's sources: docker://, oci:, "
				"docker-archive:, dir:");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	buf_printf(&source, "%s%s", has_transport(o->words[0]) ? "" : "docker://", o->words[0]);
	if (!named.name && strncmp(buf_text(&source), "docker://", 9) == 0 &&
	    image_name_is_valid(buf_text(&source) + 9))
		named.name = buf_text(&source) + 9;
	return pull(&named, buf_text(&source), &i, &e) < 0 ? say_error(&e, o->json, EXIT_REFUSED)
							   : import_say(o, &i);
}
