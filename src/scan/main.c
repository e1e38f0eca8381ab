/*
 * ward-scan: the work of `ward scan`, which starts it. In: options and paths, as ward has read
 * them. Out: a report and an exit code: 0 nothing, 1 findings, 2 usage, 125 something could not be
 * read. A program of its own because vectorscan's compiler is large.
 *
 * The order: compile the rules, open what the user named and the baseline, give up all other rights
 * (row SCAN of tables/procs.def), and only then read a byte of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/say.h"
#include "base/tool.h"
#include "confine/confine.h"
#include "scan/scan.h"

#define LIST_BYTES_MAX (64u << 20)

static const char *verb_name(size_t i)
{
	static const char *const names[] = { "paths", "rules", "stream", "look" };

	return i < ARRAY_LEN(names) ? names[i] : NULL;
}

static bool *find_flag(void *options, const char *option)
{
	struct scan_options *o = options;
	const struct {
		const char *name;
		bool *flag;
	} flags[] = { { "--json", &o->json },       { "--sarif", &o->sarif },
		      { "--redact", &o->redact },   { "--pii", &o->pii },
		      { "--tracked", &o->tracked }, { "--quiet", &o->quiet } };

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (strcmp(flags[i].name, option) == 0)
			return flags[i].flag;
	return NULL;
}

static int set_value(void *options, const char *option, const char *value, struct ward_err *e)
{
	struct scan_options *o = options;
	const struct {
		const char *name;
		const char **value;
	} values[] = { { "--severity", &o->severity }, { "--allow", &o->allow },
		       { "--baseline", &o->baseline }, { "--write-baseline", &o->write_baseline },
		       { "--mode", &o->mode },         { "--since", &o->since } };

	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (strcmp(values[i].name, option) == 0) {
			*values[i].value = value;
			return 0;
		}
	return ward_fail(e, EINVAL, "unknown option %.100s", option);
}

static int read_severity(const char *text, enum severity *ret, struct ward_err *e)
{
	for (enum severity s = SEVERITY_LOW; s <= SEVERITY_HIGH; s++)
		if (strcmp(detect_severity(s), text) == 0) {
			*ret = s;
			return 0;
		}
	return ward_fail(e, EINVAL, "--severity %.50s: expected low, medium or high", text);
}

static int read_list(struct allow *a, const char *path, struct ward_err *e)
{
	auto_buf text = { 0 };
	int r;

	if (!path)
		return 0;
	r = io_read_file(AT_FDCWD, path, LIST_BYTES_MAX, &text);
	errno = -r;
	if (r < 0)
		return ward_fail_errno(e, "cannot read %.300s", path);
	return allow_read(a, path, buf_text(&text), text.len, e);
}

/* -1 for standard input; a name that cannot be opened is a failure and drops out. */
static int open_words(struct scan_options *o, int *fds, struct report *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->count; i++) {
		bool input = strcmp(o->words[i], "-") == 0;
		int fd = input ? -1 : open(o->words[i], O_RDONLY | O_NOCTTY | O_CLOEXEC);

		if (!input && fd < 0) {
			report_failure(r, o->words[i], strerror(errno));
			continue;
		}
		o->words[kept] = o->words[i];
		o->index_fds[kept] = o->tracked && !input ? tracked_open(fd) : -1;
		fds[kept++] = fd;
	}
	o->count = kept;
	return 0;
}

static int lock_up(const int *fds, size_t count, struct ward_err *e)
{
	struct confine_tree *trees = calloc(count + 1, sizeof(*trees));
	struct confine_own own = { .trees = trees };
	struct stat st;
	int r;

	if (!trees)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0 && fstat(fds[i], &st) == 0 && S_ISDIR(st.st_mode))
			trees[own.tree_count++] =
				(struct confine_tree){ .fd = fds[i], .rights = CONFINE_READ };
	r = confine_enter(PROC_SCAN, &own, e);
	free(trees);
	return r;
}

static int write_baseline(struct report *r, int fd, struct ward_err *e)
{
	static const char head[] = "# ward scan: what was there when this was written\n";
	int n;

	if (fd < 0)
		return 0;
	if (r->baseline.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	n = ftruncate(fd, 0) < 0 ? -errno : io_write_all(fd, head, sizeof(head) - 1);
	if (n == 0 && r->baseline.len)
		n = io_write_all(fd, r->baseline.data, r->baseline.len);
	errno = -n;
	return n < 0 ? ward_fail_errno(e, "cannot write %.300s", r->options->write_baseline) : 0;
}

static int scan(struct scan_options *o, struct report *r, int *fds, struct ward_err *e)
{
	struct detect_rules *rules = NULL;
	struct detector *d = NULL;
	auto_fd baseline = -1;
	int result = detect_rules_new(DETECT_SECRET | (o->pii ? DETECT_PII : 0u), &rules, e);

	if (result == 0)
		result = detector_new(rules, report_hit, r, &d, e);
	if (result == 0)
		result = open_words(o, fds, r);
	if (result == 0 && o->write_baseline) {
		baseline = open(o->write_baseline,
				O_WRONLY | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
		if (baseline < 0)
			result = ward_fail_errno(e, "cannot write %.300s", o->write_baseline);
	}
	if (result == 0)
		result = lock_up(fds, o->count, e);
	if (result == 0) {
		report_begin(r);
		result = files_scan(r, d, fds, e);
	}
	if (result == 0)
		result = write_baseline(r, baseline, e);
	detector_free(d);
	detect_rules_free(rules);
	return result;
}

static int run(struct scan_options *o)
{
	struct report r = { .options = o };
	struct ward_err e = { 0 };
	int *fds = calloc(o->count + 1, sizeof(*fds));
	int result;
	bool usage = o->severity && read_severity(o->severity, &r.least, &e) < 0;

	o->index_fds = calloc(o->count + 1, sizeof(*o->index_fds));
	result = fds && o->index_fds ? 0 : ward_fail(&e, ENOMEM, "out of memory");
	if (result == 0 && !usage)
		result = read_list(&r.allow, o->allow, &e);
	if (result == 0 && !usage)
		result = read_list(&r.allow, o->baseline, &e);
	if (result == 0 && !usage)
		result = scan(o, &r, fds, &e);
	result = usage        ? say_error(&e, o->json, EXIT_USAGE)
		 : result < 0 ? say_error(&e, o->json, EXIT_REFUSED)
			      : report_end(&r);
	for (size_t i = 0; fds && i < o->count; i++)
		if (fds[i] > STDERR_FILENO)
			close(fds[i]);
	free(fds);
	free(o->index_fds);
	allow_free(&r.allow);
	buf_free(&r.out);
	buf_free(&r.baseline);
	return result;
}

int main(int argc, char **argv)
{
	static const struct tool tool = { "ward-scan", "ward scan", verb_name, find_flag,
					  set_value };
	struct scan_options o = { 0 };
	struct ward_err e = { 0 };
	int verb = tool_read(&tool, argv, &o, &o.words, &o.count, &e);

	(void)argc;
	switch (verb) {
	case 0:
		return run(&o);
	case 1:
		return report_rules(o.json);
	case 2:
		return stream_run(&o, &e) < 0 ? say_error(&e, false, EXIT_REFUSED) : EXIT_FINE;
	case 3:
		return look_run(&o, &e) < 0 ? say_error(&e, false, EXIT_REFUSED) : EXIT_FINE;
	default:
		return say_error(&e, o.json, EXIT_USAGE);
	}
}
