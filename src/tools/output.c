/*
 * Judging output. In: bytes that a tool wrote. Out: whether they are one JSON value that matches
 * the schema, whether they hold text that acts or hides, which secrets. The judge is a process made
 * by fork that gives up its rights (row SCAN of tables/procs.def, without any directory) before it
 * reads a byte and answers with one struct of fixed size; ward-scan is a program with the same
 * rights. The judgement itself is a pure function, fuzzed (fuzz/json_schema.c).
 */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "confine/confine.h"
#include "host/program.h"
#include "tools/tools.h"

#define SCAN_OUTPUT_MAX (1024u * 1024)
#define RULES_MAX 32

/* Control characters but line ends and tabs; what turns, hides or moves. */
static void count_hidden(const char *bytes, size_t n, struct output_verdict *ret)
{
	unsigned line = 1;

	for (size_t i = 0; i < n;) {
		unsigned point = 0;
		size_t len = bytes[i] ? text_utf8((const unsigned char *)bytes + i, &point) : 0;
		bool space =
			point == '\n' || point == '\t' || (point == '\r' && bytes[i + 1] == '\n');

		line += point == '\n';
		if (!space && (!len || point < 0x20 || point == 0x7f || text_acts(point))) {
			if (!ret->hidden++)
				ret->hidden_line = line;
		}
		i += len ? len : 1;
	}
}

void output_judge(const char *bytes, size_t n, const char *schema, struct output_verdict *ret)
{
	struct ward_err e = { 0 };
	struct reader r = { .name = "output", .e = &e };
	auto_node value = NULL;
	auto_node rules = NULL;

	*ret = (struct output_verdict){ .matches = !schema };
	count_hidden(bytes, n, ret);
	if (!schema)
		return;
	if (n <= NODE_BYTES_MAX)
		value = json_read(&r, (const uint8_t *)bytes, n);
	ret->is_json = value && !r.count;
	if (!ret->is_json) {
		snprintf(ret->why.message, sizeof(ret->why.message), "%.250s",
			 n > NODE_BYTES_MAX ? "more than 1 MiB of JSON" : e.why);
		return;
	}
	rules = json_read(&r, (const uint8_t *)schema, strlen(schema));
	ret->matches = rules && !r.count && json_schema_validate(rules, value, &ret->why) == 0;
}

/* The child: everything that it needs is in its memory already. */
static _Noreturn void judge(const struct buf *bytes, const char *schema, int fd)
{
	struct output_verdict verdict;
	struct ward_err e = { 0 };

	if (confine_enter(PROC_SCAN, NULL, &e) < 0)
		_exit(2);
	output_judge(buf_text(bytes), bytes->len, schema, &verdict);
	_exit(io_write_all(fd, &verdict, sizeof(verdict)) < 0);
}

int output_judge_apart(const struct buf *bytes, const char *schema, struct output_verdict *ret,
		       struct ward_err *e)
{
	int fds[2], status = 0, r;
	pid_t pid;

	if (!bytes->len && !schema) { /* nothing to read, nothing to ask */
		*ret = (struct output_verdict){ .matches = true };
		return 0;
	}
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		judge(bytes, schema, fds[1]);
	close(fds[1]);
	r = pid < 0 ? -errno : io_read_exactly(fds[0], ret, sizeof(*ret));
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || r < 0 || status != 0)
		return ward_fail(e, EIO, "the process that reads the output failed");
	/* its memory may have been taken over: texts are ended here */
	ret->why.message[sizeof(ret->why.message) - 1] = '\0';
	ret->why.path[sizeof(ret->why.path) - 1] = '\0';
	return 0;
}

/* The rules of ward-scan's JSON, with their lines. */
static int read_rules(const struct buf *text, struct strv *ret, struct ward_err *e)
{
	struct ward_err why = { 0 };
	struct reader r = { .name = "", .e = &why };
	auto_node root = json_read(&r, (const uint8_t *)buf_text(text), text->len);
	const struct node *list =
		root && root->kind == NODE_MAP ? node_get(root, "findings") : NULL;

	if (!list || r.count)
		return ward_fail(e, EIO, "cannot read what ward-scan found: %.200s", why.why);
	for (const struct node *n = list->first; n && ret->len < RULES_MAX; n = n->next) {
		const struct node *rule = n->kind == NODE_MAP ? node_get(n, "rule") : NULL;
		const struct node *line = n->kind == NODE_MAP ? node_get(n, "line") : NULL;

		if (rule && rule->text)
			strv_addf(ret, "%.60s:%.20s", rule->text,
				  line && line->text ? line->text : "1");
	}
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int start_scan(const char *path, int in, int out, pid_t *ret_pid)
{
	char word_paths[] = "paths", json[] = "--json", quiet[] = "--quiet", end[] = "--",
	     dash[] = "-", name[] = "ward-scan";
	char *const argv[] = { name, word_paths, json, quiet, end, dash, NULL };
	char *const envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn(ret_pid, path, &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int output_scan(const struct buf *bytes, struct strv *ret_rules, struct ward_err *e)
{
	auto_fd in = bytes->len ? memfd_create("tool-output", MFD_CLOEXEC) : -1;
	auto_free char *path = NULL;
	auto_buf text = { 0 };
	int fds[2], status = 0, r;
	pid_t pid = -1;

	if (!bytes->len)
		return 0;
	if (in < 0 || io_write_all(in, bytes->data, bytes->len) < 0 || lseek(in, 0, SEEK_SET) < 0)
		return ward_fail_errno(e, "cannot hand the output to ward-scan");
	r = program_path("ward-scan", &path, e);
	if (r < 0)
		return r;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	r = start_scan(path, in, fds[1], &pid);
	close(fds[1]);
	if (r == 0)
		r = io_read_all(fds[0], SCAN_OUTPUT_MAX, &text);
	close(fds[0]);
	if (pid > 0 && r < 0)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0 || pid < 0)
		return ward_fail(e, EIO, "ward-scan could not look at the output");
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return program_failed("ward-scan", status, e);
	return read_rules(&text, ret_rules, e);
}
