/*
 * ward cp: files between the host and a sandbox that runs. In: a path of each, that of the sandbox
 * as BOX:PATH. Out: the copy. ward-init's own code does the inner half with the sandbox's rights;
 * this process does the outer half with the user's, and believes nothing that comes from inside
 * (control/copy.c). What comes out passes the gate (guard/guard_gate.c): what a sweep would take
 * out of a workspace is refused, unless --protected asks for it.
 */
#include "cli/boxes.h"

#include <errno.h>
#include <string.h>

#include "base/progress.h"
#include "control/copy.h"
#include "guard/guard_gate.h"

struct transfer {
	const char *host;   /* path outside */
	char *box;          /* name of the sandbox; owned */
	const char *inside; /* path there */
	bool out;           /* out of the sandbox */
};

/* BOX:PATH; false for a path of the host. */
static bool split(const char *word, char **ret_box, const char **ret_path)
{
	const char *colon = strchr(word, ':');

	if (!colon || colon == word || memchr(word, '/', (size_t)(colon - word)))
		return false;
	*ret_box = strndup(word, (size_t)(colon - word));
	*ret_path = colon[1] ? colon + 1 : ".";
	return *ret_box != NULL;
}

static int read_words(const struct options *o, struct transfer *t, struct ward_err *e)
{
	char *other = NULL;
	const char *path;

	t->out = split(o->words[0], &t->box, &t->inside);
	if (t->out && !split(o->words[1], &other, &path)) {
		t->host = o->words[1];
		return 0;
	}
	if (!t->out && split(o->words[1], &t->box, &t->inside)) {
		t->host = o->words[0];
		return 0;
	}
	free(other);
	ward_fail(e, EINVAL, "exactly one of the two paths must be in a sandbox");
	return ward_remedy(
		e, "for instance ward cp notes.txt web:/tmp/, or ward cp web:/tmp/out.txt .");
}

/* The last part of a path, as the name of the copy; "" where there is none. */
static void base_name(const char *path, char *out, size_t n)
{
	size_t len = strlen(path);
	const char *begin;

	while (len && path[len - 1] == '/')
		len--;
	begin = path + len;
	while (begin > path && begin[-1] != '/')
		begin--;
	snprintf(out, n, "%.*s", (int)(path + len - begin), begin);
	if (strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
		out[0] = '\0';
}

/* Starts the inner half. */
static int start(const struct transfer *t, const struct box_info *box, struct client *c,
		 struct client_answer *a, struct ward_err *e)
{
	char name[256];
	const char *words[4] = { t->out ? "get" : "put", t->inside, NULL, NULL };
	union {
		const char *const *in;
		char *const *out;
	} argv = { .in = words };
	struct control_exec x = { .flags = CONTROL_COPY | CONTROL_INPUT,
				  .cwd = "",
				  .argv = argv.out };
	int r;

	base_name(t->host, name, sizeof(name));
	if (!t->out)
		words[2] = name;
	r = client_connect(box, c, e);
	if (r == 0)
		r = client_send_exec(c, &x, e);
	if (r == 0)
		r = client_receive(c, a, CLIENT_ANSWER_MS, e);
	if (r == 0 && (a->message.op != CONTROL_STARTED || a->fd_count != 3))
		r = ward_fail(e, EPROTO, "the sandbox sent an unexpected answer");
	return r;
}

static int copy_out(const struct transfer *t, const struct box_info *box, bool with_protected,
		    struct copy_report *report, struct ward_err *e)
{
	struct client_answer a = { 0 };
	struct client c = NO_CLIENT;
	const struct gate_policy policy = { .protect = &box->protect, .trees = &box->writable };
	struct copy_place place = { .dir_fd = -1 };
	char base[256];
	int r;

	base_name(t->inside, base, sizeof(base));
	r = copy_open_place(t->host, base, &box->writable, &place, e);
	if (r == 0)
		r = start(t, box, &c, &a, e);
	if (r == 0)
		r = with_protected ? copy_receive(a.fds[1], &place, report, e)
				   : copy_receive_judged(a.fds[1], &place, &policy, report, e);
	for (size_t i = 0; i < a.fd_count; i++)
		close(a.fds[i]);
	own_close_fd(&place.dir_fd);
	client_close(&c);
	return r;
}

static int copy_in(const struct transfer *t, const struct box_info *box, struct copy_report *report,
		   struct ward_err *e)
{
	struct client_answer a = { 0 };
	struct client c = NO_CLIENT;
	struct ward_err inside = { 0 };
	auto_fd source = copy_open_source(t->host, &box->writable, e);
	int r = source < 0 ? source : start(t, box, &c, &a, e);

	if (r == 0) {
		r = copy_send(a.fds[0], source, report, e);
		close(a.fds[0]);
		/* why it stopped taking is the better reason */
		if (copy_receive_end(a.fds[1], &inside) < 0) {
			*e = inside;
			r = -e->code;
		}
		close(a.fds[1]);
		close(a.fds[2]);
	}
	client_close(&c);
	return r;
}

static int tell(const struct options *o, const struct copy_report *report)
{
	int code = report->error_count ? EXIT_REFUSED : EXIT_FINE;
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	for (size_t i = 0; i < report->errors.len; i++) {
		struct ward_err e = { 0 };

		ward_fail(&e, EIO, "%.700s", report->errors.items[i]);
		if (!o->json)
			say_error(&e, false, 0);
	}
	if (!o->json)
		return code;
	json_begin_object(&j, NULL);
	json_uint(&j, "files", report->files);
	json_uint(&j, "bytes", report->bytes);
	json_begin_array(&j, "errors");
	for (size_t i = 0; i < report->errors.len; i++)
		json_string(&j, NULL, report->errors.items[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(&out, "\n");
	return say_out(&out, code);
}

int verb_cp(struct options *o)
{
	struct progress shown;
	struct copy_report report = { .progress = progress_for_terminal(&shown, !o->json) };
	struct transfer t = { 0 };
	struct box_info box = { 0 };
	struct ward_err e = { 0 };
	int code;

	if (read_words(o, &t, &e) < 0) {
		code = say_usage(&e, o);
	} else {
		int r = client_find_alive(t.box, &box, &e);

		report.root = o->words[0];
		if (r == 0)
			r = t.out ? copy_out(&t, &box, o->with_protected, &report, &e)
				  : copy_in(&t, &box, &report, &e);
		progress_end(report.progress);
		code = tell(o, &report);
		if (r < 0)
			code = say_error(&e, o->json, EXIT_REFUSED);
	}
	free(t.box);
	box_info_clear(&box);
	copy_report_clear(&report);
	return code;
}
