/*
 * The sandbox of the built-in tools. In: the options of `ward mcp serve --session`. Out: a detached
 * sandbox under review, in which commands run by `ward exec`. It lives as long as the server: a
 * process of ours, the leash, waits for the end of a pipe that only the server holds, and then
 * stops the sandbox, also when the server was killed. What changed in the workspace waits for
 * `ward diff` and `ward apply`. Runs with the user's rights.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/boxes.h"
#include "host/program.h"

#define STARTED_MAX 4096

static void add_option(struct strv *words, const char *option, const char *value)
{
	if (!value)
		return;
	strv_add(words, option);
	strv_add(words, value);
}

static int start_words(const struct options *o, struct strv *ret, struct ward_err *e)
{
	static const char *const fixed[] = { "run", "-d", "--review", "--json" };
	static const char *const command[] = { "--", "sleep", "infinity" };
	auto_free char *ward = NULL;
	int r = program_path("ward", &ward, e);

	if (r < 0)
		return r;
	strv_add(ret, ward);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		strv_add(ret, fixed[i]);
	add_option(ret, "-p", o->policy_file);
	add_option(ret, "--profile", o->profile);
	add_option(ret, "-w", o->workspace);
	for (size_t i = 0; i < ARRAY_LEN(command); i++)
		strv_add(ret, command[i]);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* {"id":"...","name":...} of `ward run -d --json`. */
static bool read_id(const struct buf *text, char ret[24])
{
	struct mcp_span whole = { (const uint8_t *)buf_text(text), text->len }, id;
	auto_buf value = { 0 };

	while (whole.n && whole.at[whole.n - 1] == '\n')
		whole.n--;
	if (!mcp_get(whole, "id", &id) || !mcp_text(id, &value) || !value.len || value.len >= 24)
		return false;
	memcpy(ret, value.data, value.len + 1);
	return true;
}

static void become(const char *ward, const char *verb, const char *id)
{
	char name[] = "ward", word[8], box[24];
	char *const argv[] = { name, word, box, NULL };

	snprintf(word, sizeof(word), "%s", verb);
	snprintf(box, sizeof(box), "%s", id);
	execv(ward, argv);
	_exit(1);
}

static void handle_ends(void (*how)(int))
{
	signal(SIGTERM, how);
	signal(SIGINT, how);
	signal(SIGHUP, how);
}

/* Waits in a session of its own for the end of the pipe, then stops the sandbox and removes its
 * entry: the id was never shown. */
static _Noreturn void be_leash(const char *ward, const char *id, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte;
	pid_t pid;

	setsid();
	handle_ends(SIG_IGN);
	for (int i = 0; i <= STDERR_FILENO; i++)
		if (null < 0 || dup2(null, i) < 0)
			_exit(1);
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	pid = fork();
	if (pid == 0) {
		handle_ends(SIG_DFL);
		become(ward, "stop", id);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	handle_ends(SIG_DFL);
	become(ward, "rm", id);
	_exit(1);
}

static int put_on_leash(struct session *s, const char *ward, struct ward_err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	s->leash = fork();
	if (s->leash == 0) {
		close(fds[1]);
		be_leash(ward, s->id, fds[0]);
	}
	close(fds[0]);
	if (s->leash < 0) {
		close(fds[1]);
		return ward_fail_errno(e, "cannot start a process");
	}
	s->leash_fd = fds[1];
	return 0;
}

/* Runs ward itself, outside of every sandbox. */
static int run_ward(const char *const words[], uint64_t output_max, struct call_result *ret,
		    struct ward_err *e)
{
	struct call_request request = { .output_max = output_max };
	auto_free char *ward = NULL;
	auto_strv all = { 0 };
	int r = program_path("ward", &ward, e);

	*ret = (struct call_result){ 0 };
	if (r < 0)
		return r;
	strv_add(&all, ward);
	for (size_t i = 0; words[i]; i++)
		strv_add(&all, words[i]);
	return all.failed ? ward_fail(e, ENOMEM, "out of memory")
			  : call_run_words(&all, &request, ret, e);
}

int session_changes(const struct session *s, uint64_t output_max, struct call_result *ret,
		    struct ward_err *e)
{
	const char *const words[] = { "diff", "--patch", s->id, NULL };

	return run_ward(words, output_max, ret, e);
}

int session_journal(const char *run, uint64_t output_max, struct call_result *ret,
		    struct ward_err *e)
{
	const char *const words[] = { "audit", "show", "--json", run, NULL };

	return run_ward(words, output_max, ret, e);
}

int session_start(struct session *s, const struct options *o, struct ward_err *e)
{
	struct call_request request = { .output_max = STARTED_MAX };
	auto_result result = { 0 };
	auto_strv words = { 0 };
	int r = start_words(o, &words, e);

	s->leash_fd = -1;
	if (r == 0)
		r = call_run_words(&words, &request, &result, e);
	if (r < 0)
		return ward_wrap(e, "starting the session's sandbox");
	if (result.exit_code != 0 || !read_id(&result.out, s->id)) {
		*s->id = '\0';
		ward_fail(e, EPERM, "ward run did not start it: %.600s", buf_text(&result.error));
		return ward_wrap(e, "starting the session's sandbox");
	}
	r = put_on_leash(s, words.items[0], e);
	if (r < 0) {
		const char *const stop[] = { "stop", s->id, NULL };
		struct ward_err ignored = { 0 };

		call_result_free(&result);
		(void)!run_ward(stop, STARTED_MAX, &result, &ignored);
	}
	return r;
}

void session_stop(struct session *s)
{
	if (!*s->id)
		return;
	own_close_fd(&s->leash_fd);
	while (s->leash > 0 && waitpid(s->leash, NULL, 0) < 0 && errno == EINTR)
		;
	*s->id = '\0';
}

int session_freeze(struct session *s, struct ward_err *e)
{
	struct box_info info = { 0 };
	int r = client_find_alive(s->id, &info, e);

	if (r == 0)
		r = boxes_freeze(&info, e);
	box_info_clear(&info);
	if (r < 0)
		return r;
	if (s->leash > 0) { /* else it would stop the sandbox at our end */
		(void)kill(s->leash, SIGKILL);
		while (waitpid(s->leash, NULL, 0) < 0 && errno == EINTR)
			;
	}
	own_close_fd(&s->leash_fd);
	s->leash_fd = -1;
	*s->id = '\0';
	return 0;
}

void session_leave(struct session *s)
{
	if (*s->id)
		own_close_fd(&s->leash_fd);
}

int session_run(const struct session *s, char *const *argv, const struct buf *input,
		uint64_t output_max, struct call_result *ret, struct ward_err *e)
{
	struct call_request request = { .input = input, .output_max = output_max };
	auto_free char *ward = NULL;
	auto_strv words = { 0 };
	int r = program_path("ward", &ward, e);

	*ret = (struct call_result){ 0 };
	if (r < 0)
		return r;
	strv_add(&words, ward);
	strv_add(&words, "exec");
	if (input)
		strv_add(&words, "-i");
	strv_add(&words, s->id);
	strv_add(&words, "--");
	for (size_t i = 0; argv[i]; i++)
		strv_add(&words, argv[i]);
	if (words.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return call_run_words(&words, &request, ret, e);
}
