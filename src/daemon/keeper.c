/*
 * The keeper (keeper.h). In: requests of the front over a socket pair, one message each. Out:
 * sandboxes, started by libward, that live on their own: when the keeper dies, ward-box of each
 * goes on, and the next keeper finds it by its name. Runs with the rights of the user who started
 * the server, because sandboxes are made of them; so it is small, parses nothing but numbers and
 * names of letters and digits, and has no connection to a client or a sandbox: the pipes of ward-
 * envd pass through it as descriptors.
 *
 * The calls of libward wait; a few threads take the requests as they come.
 */
#include "daemon/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "daemon/keeper_facts.h"
#include "protocol/envd.h"
#include "rules/json_in.h"
#include "ward/ward.h"

#define EXEC_WAIT_MS 20000
#define ATTACH_WAIT_MS 5000 /* what runs inside already may be hostile, and hold a thread so long */
#define END_WAIT_MS 10000

int keeper_bad(struct work *w, int error, const char *why)
{
	w->e.code = error;
	snprintf(w->e.why, sizeof(w->e.why), "%s", why);
	return -error;
}

static bool is_own(const struct work *w, const char id[SANDBOX_ID + 1])
{
	return !id[SANDBOX_ID] && route_is_id(id, strlen(id)) && strncmp(id, w->k->tag, TAG) == 0;
}

/* The front is not believed: what it names must be of this server. */
static bool is_fine(const struct work *w)
{
	const struct keeper_request *q = &w->q;

	if (q->op == KEEPER_LIST || q->op == KEEPER_SNAPSHOTS || q->op == KEEPER_TEMPLATES)
		return true;
	if (*q->snapshot && !is_own(w, q->snapshot))
		return false;
	if (q->op == KEEPER_DROP)
		return *q->snapshot;
	if (q->op == KEEPER_VERSION)
		return !q->template[TEMPLATE_MAX] && route_is_template(q->template);
	if (!is_own(w, q->id) || (q->op == KEEPER_SAVE && !*q->snapshot))
		return false;
	return q->op != KEEPER_START ||
	       (!q->template[TEMPLATE_MAX] && route_is_template(q->template));
}

/* The policy of a template. */
int keeper_find_policy(struct work *w, char ret[PATH_MAX])
{
	if (w->k->templates) {
		snprintf(ret, PATH_MAX, "%s/%s.yaml", w->k->templates, w->q.template);
		if (access(ret, R_OK) == 0)
			return 0;
	}
	if (!route_is_built_in(w->q.template))
		return keeper_bad(w, ENOENT, "there is no such template");
	snprintf(ret, PATH_MAX, "%s", w->k->base);
	return 0;
}

int keeper_fill_spec(struct work *w, struct ward_spec *s, const char *policy)
{
	int r = ward_spec_program(s, w->k->ward, &w->e);

	if (r >= 0)
		r = ward_spec_policy(s, policy, &w->e);
	if (r >= 0)
		r = ward_spec_workspace(s, w->k->workspace, &w->e);
	if (r >= 0)
		r = ward_spec_set(s, "filesystem.mode", "read_only", &w->e);
	if (r >= 0 && w->q.no_network)
		r = ward_spec_set(s, "network.mode", "none", &w->e);
	if (r >= 0) /* the server's own program; no value of a request is widened by that */
		r = ward_spec_widen(s, 1);
	if (r >= 0)
		r = ward_spec_mount(s, w->k->envd, ENVD_PATH, 0, &w->e);
	if (r >= 0)
		r = ward_spec_mount(s, w->k->envd, ENVD_BIN "/sudo", 0, &w->e);
	return r < 0 || !*w->q.id ? r : ward_spec_name(s, w->q.id, &w->e);
}

/* Runs ward-envd in the box; it goes on there by itself, and its pipes come here. */
static int attach(struct work *w, struct ward_box *b)
{
	static const char *const argv[] = { ENVD_PATH, NULL };
	const struct ward_command c = { .size = sizeof(c), .argv = argv, .directory = "/" };
	struct ward_process *p = NULL;
	int wait_ms = w->q.op == KEEPER_ATTACH ? ATTACH_WAIT_MS : EXEC_WAIT_MS;
	int r = ward_exec(b, &c, &p, &w->e), code = -1;

	if (r < 0)
		return r;
	w->fds[0] = ward_process_stream(p, 0, &w->e);
	w->fds[1] = ward_process_stream(p, 1, &w->e);
	r = w->fds[0] < 0 ? w->fds[0] : w->fds[1];
	if (r >= 0)
		r = ward_process_wait(p, wait_ms, &code, &w->e);
	ward_process_free(p);
	if (r < 0)
		return r;
	return r == 1 && code == 0 ? 0
				   : keeper_bad(w, EIO, "ward-envd did not start in the sandbox");
}

static int end_box(struct work *w, struct ward_box *b)
{
	int code, r = ward_kill(b, &w->e);

	if (r == -ESRCH)
		r = 0;
	if (r >= 0)
		r = ward_wait(b, END_WAIT_MS, &code, &w->e);
	if (r == 0)
		return keeper_bad(w, ETIMEDOUT, "the sandbox does not end");
	return r < 0 ? r : ward_remove(b, &w->e);
}

static int start(struct work *w)
{
	struct ward_spec *s = ward_spec_new();
	struct ward_box *b = NULL;
	char policy[PATH_MAX];
	int r = s ? keeper_find_policy(w, policy) : keeper_bad(w, ENOMEM, "out of memory");

	if (r >= 0)
		r = keeper_fill_spec(w, s, policy);
	if (r >= 0)
		r = ward_start(s, WARD_DETACHED, &b, &w->e);
	if (r >= 0)
		r = keeper_facts(s, policy, &w->text, &w->e);
	ward_spec_free(s);
	if (r >= 0 && *w->q.snapshot)
		r = keeper_load(w, b);
	if (r >= 0)
		r = attach(w, b);
	if (r < 0 && b) {
		struct ward_error why = w->e;

		(void)!end_box(w, b);
		w->e = why;
	}
	ward_box_free(b);
	return r;
}

static int version(struct work *w)
{
	struct ward_spec *s = ward_spec_new();
	char policy[PATH_MAX];
	int r = s ? keeper_find_policy(w, policy) : keeper_bad(w, ENOMEM, "out of memory");

	if (r >= 0)
		r = keeper_fill_spec(w, s, policy);
	if (r >= 0)
		r = keeper_version(s, policy, &w->text, &w->e);
	ward_spec_free(s);
	return r;
}

/* "name" of each entry of ward_list(), if it is one of this server's and has not ended. */
static void read_entry(struct work *w, struct json_in *j)
{
	auto_buf name = { 0 }, state = { 0 };
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key))
		if (strcmp(key, "name") == 0 && json_in_peek(j) == '"')
			json_in_string(j, &name);
		else if (strcmp(key, "state") == 0 && json_in_peek(j) == '"')
			json_in_string(j, &state);
		else
			json_in_skip(j);
	if (route_is_id(buf_text(&name), strlen(buf_text(&name))) &&
	    strncmp(buf_text(&name), w->k->tag, TAG) == 0)
		buf_printf(&w->text, "%s %.16s\n", buf_text(&name), buf_text(&state));
}

static int list(struct work *w)
{
	struct json_level outer, inner;
	struct json_in j;
	const char *key;
	char *json = NULL;
	int r = ward_list(&json, &w->e);
	bool fine;

	if (r < 0)
		return r;
	json_in_init(&j, (const uint8_t *)json, strlen(json));
	if (json_in_open(&j, '{', &outer)) {
		while (json_in_next(&j, &outer, &key)) {
			if (json_in_peek(&j) != '[' || !json_in_open(&j, '[', &inner)) {
				json_in_skip(&j);
				continue;
			}
			while (json_in_next(&j, &inner, NULL))
				read_entry(w, &j);
		}
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	ward_free(json);
	if (!fine)
		return keeper_bad(w, EBADMSG, "the list of sandboxes cannot be read");
	/* never a part of it: what is not in the list counts as ended */
	return w->text.len < KEEPER_TEXT_MAX ? 0
					     : keeper_bad(w, E2BIG, "there are too many sandboxes");
}

/* Ends all that runs inside; files stay. */
static int end_programs(struct work *w, struct ward_box *b)
{
	static const char *const argv[] = { ENVD_PATH, ENVD_END_ALL, NULL };
	const struct ward_command c = { .size = sizeof(c), .argv = argv, .directory = "/" };
	struct ward_process *p = NULL;
	int code = -1, r = ward_exec(b, &c, &p, &w->e);

	if (r < 0)
		return r;
	r = ward_process_wait(p, ATTACH_WAIT_MS, &code, &w->e);
	ward_process_free(p);
	if (r < 0)
		return r;
	return r == 1 && code == 0 ? 0 : keeper_bad(w, EIO, "the sandbox's programs do not end");
}

static int pause_box(struct work *w, struct ward_box *b)
{
	int r = w->q.files_only ? end_programs(w, b) : 0;

	return r < 0 ? r : ward_pause(b, &w->e);
}

static int resume_box(struct work *w, struct ward_box *b)
{
	int r = ward_resume(b, &w->e);

	return r >= 0 && w->q.files_only ? end_programs(w, b) : r;
}

static int on_box(struct work *w)
{
	static const char *const everything[] = { "*", "0.0.0.0/0", "::/0", NULL };
	struct ward_box *b = NULL;
	char *json = NULL;
	int r = ward_open(w->q.id, &b, &w->e);

	if (r < 0)
		return w->q.op == KEEPER_KILL && (r == -ENOENT || r == -ESRCH) ? 0 : r;
	if (w->q.op == KEEPER_ATTACH)
		r = attach(w, b);
	else if (w->q.op == KEEPER_KILL)
		r = end_box(w, b);
	else if (w->q.op == KEEPER_PAUSE)
		r = pause_box(w, b);
	else if (w->q.op == KEEPER_CUT)
		r = ward_net_deny(b, everything, 0, &w->e);
	else if (w->q.op == KEEPER_RESUME)
		r = resume_box(w, b);
	else if (w->q.op == KEEPER_QUESTIONS)
		r = keeper_questions(w, b);
	else if (w->q.op == KEEPER_ANSWER)
		r = keeper_give_answer(w, b);
	else if (w->q.op == KEEPER_SAVE)
		r = keeper_save(w, b);
	else if (w->q.op == KEEPER_STATS)
		r = ward_stats(b, &json, &w->e);
	else
		r = keeper_bad(w, EINVAL, "no such request");
	if (json && strlen(json) < KEEPER_TEXT_MAX)
		buf_puts(&w->text, json);
	ward_free(json);
	ward_box_free(b);
	return r;
}

static void answer(struct work *w, int r)
{
	struct keeper_reply reply = { .seq = w->q.seq, .result = r < 0 ? r : 0 };
	auto_buf out = { 0 };
	size_t count = r >= 0 && w->fds[0] >= 0 && w->fds[1] >= 0 ? 2 : 0;

	if (r < 0) {
		w->text.len = 0;
		buf_printf(&w->text, "%s%s%s", w->e.what, *w->e.what ? ": " : "", w->e.why);
		if (*w->e.remedy)
			buf_printf(&w->text, " (%s)", w->e.remedy);
	}
	reply.bytes = (uint32_t)w->text.len;
	buf_add(&out, &reply, sizeof(reply));
	buf_add(&out, buf_text(&w->text), w->text.len);
	if (out.failed || io_send_fds(w->k->fd, out.data, out.len, w->fds, count) < 0) {
		/* descriptors or memory are short; without an answer the front waits for ever */
		reply.result = -EAGAIN;
		reply.bytes = 0;
		(void)!io_send_fds(w->k->fd, &reply, sizeof(reply), NULL, 0);
	}
}

static void *take_requests(void *argument)
{
	const struct keeper *k = argument;

	for (;;) {
		struct work w = { .k = k, .fds = { -1, -1 } };
		ssize_t n = recv(k->fd, &w.q, sizeof(w.q), 0);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		if (n != sizeof(w.q) || !is_fine(&w))
			r = keeper_bad(&w, EINVAL, "not a request that the front may make");
		else if (w.q.op == KEEPER_START)
			r = start(&w);
		else if (w.q.op == KEEPER_LIST)
			r = list(&w);
		else if (w.q.op == KEEPER_TEMPLATES)
			r = keeper_list_templates(&w);
		else if (w.q.op == KEEPER_VERSION)
			r = version(&w);
		else if (w.q.op == KEEPER_DROP)
			r = keeper_drop(&w);
		else if (w.q.op == KEEPER_SNAPSHOTS)
			r = keeper_list_snapshots(&w);
		else
			r = on_box(&w);
		answer(&w, r);
		own_close_fd(&w.fds[0]);
		own_close_fd(&w.fds[1]);
		buf_free(&w.text);
	}
}

void keeper_run(const struct keeper *k, unsigned threads)
{
	pthread_t ids[64];
	unsigned count = 0;

	while (count < threads && count < ARRAY_LEN(ids) &&
	       pthread_create(&ids[count], NULL, take_requests, (void *)(uintptr_t)k) == 0)
		count++;
	while (count)
		pthread_join(ids[--count], NULL);
}
