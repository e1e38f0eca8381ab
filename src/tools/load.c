/*
 * Loading. In: the name of a file, or none. Out: what it says, the workspace of its tools, and the
 * policy above them. A tools.yaml that was only found may have been written by an agent: nothing in
 * it runs before its content was accepted (ward tool trust), as with a ward.yaml that widens the
 * defaults. The bytes are read once, hashed and parsed. Runs with the user's rights.
 */
#include "tools/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/spec.h"
#include "state/trust.h"

void tools_unload(struct tools_source *s)
{
	free(s->shown);
	free(s->path);
	free(s->dir);
	free(s->workspace);
	buf_free(&s->bytes);
	tools_free(&s->t);
	*s = (struct tools_source){ 0 };
}

static int read_bytes(struct tools_source *s, struct ward_err *e)
{
	auto_fd fd = open(s->shown, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
					    (s->named ? 0 : O_NOFOLLOW));
	auto_buf shown = { 0 };
	struct stat st;
	int r;

	text_escape(&shown, s->shown);
	if (fd < 0) {
		r = ward_fail_errno(e, "cannot open %.300s", buf_text(&shown));
		return e->code == ENOENT ? ward_remedy(e, "name one with -f FILE; ward tool init "
							  "writes a draft")
					 : r;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "%.300s is not a regular file", buf_text(&shown));
	r = io_read_all(fd, TOOLS_BYTES_MAX, &s->bytes);
	if (r < 0)
		return ward_fail(e, -r, "cannot read %.300s: %s", buf_text(&shown), strerror(-r));
	s->path = realpath(s->shown, NULL);
	s->dir = s->path ? strndup(s->path, (size_t)(strrchr(s->path, '/') - s->path + 1)) : NULL;
	return s->dir ? 0 : ward_fail_errno(e, "cannot resolve %.300s", buf_text(&shown));
}

/* What trust counts: no policy has the same hash. */
static void hash(struct tools_source *s)
{
	static const char what[] = "tools.yaml";
	struct sha256 h;

	sha256_begin(&h);
	sha256_add(&h, what, sizeof(what));
	sha256_add(&h, buf_text(&s->bytes), s->bytes.len);
	sha256_end_hex(&h, s->hex);
}

static int find_workspace(struct tools_source *s, struct ward_err *e)
{
	auto_free char *path = path_join(s->dir, s->t.file.workspace);

	s->workspace = path ? realpath(path, NULL) : NULL;
	return s->workspace ? 0 : ward_fail_errno(e, "workspace: %.300s", s->t.file.workspace);
}

int tools_load(const char *file, struct tools_source *ret, struct policy_errors *errors,
	       struct ward_err *e)
{
	int r;

	*ret = (struct tools_source){ .named = file != NULL, .home = secure_getenv("HOME") };
	if (ret->home && *ret->home != '/')
		ret->home = NULL;
	ret->shown = strdup(file ? file : TOOLS_FILE_NAME);
	if (!ret->shown)
		return ward_fail(e, ENOMEM, "out of memory");
	r = read_bytes(ret, e);
	if (r < 0)
		return r;
	hash(ret);
	r = tools_read(&ret->t, ret->shown, (const uint8_t *)buf_text(&ret->bytes), ret->bytes.len,
		       errors);
	if (r == -EINVAL)
		return ward_fail(e, EINVAL, "%.300s has %zu error%s", ret->shown, errors->lines.len,
				 errors->lines.len == 1 ? "" : "s");
	if (r < 0)
		return ward_fail(e, -r, "out of memory");
	return find_workspace(ret, e);
}

int tools_check_trust(const struct tools_source *s, struct ward_err *e)
{
	auto_buf shown = { 0 };
	int r = s->named ? 1 : trust_has(s->hex, e);

	if (r != 0)
		return r < 0 ? r : 0;
	text_escape(&shown, s->shown);
	ward_fail(e, EACCES, "%.300s was found here and its content is not accepted",
		  buf_text(&shown));
	return ward_remedy(e, "review it, then: ward tool trust; or name it: -f %.300s",
			   buf_text(&shown));
}

int tools_load_policy(const struct tools_source *s, const struct tool_agent *agent, bool run,
		      struct policy *ret, char **ret_path, struct policy_errors *errors,
		      struct ward_err *e)
{
	const char *said = agent && agent->policy ? agent->policy : s->t.file.policy;
	auto_free char *path = path_join(s->dir, said ? said : "ward.yaml");
	int r;

	*ret = (struct policy){ 0 };
	if (!path)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!said && access(path, F_OK) < 0)
		return 0;
	r = policy_defaults(ret, e);
	if (r == 0)
		r = run ? spec_read_accepted(path, ret, errors, e)
			: spec_read_policy(path, ret, errors, e);
	if (r < 0) {
		policy_clear(ret);
		return r;
	}
	if (ret_path)
		*ret_path = take_ptr(path);
	return 1;
}
