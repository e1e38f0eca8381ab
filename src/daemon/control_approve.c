/*
 * Questions of sandboxes, for a client with the right APPROVE: /ward/v1/approvals. In: what the
 * supervisors of sandboxes hold until a person answers (docs/approvals.md), by way of the keeper.
 * Out: the questions of the sandboxes that the client sees; an answer to one of them. The first
 * answer counts, wherever it comes from.
 */
#include <errno.h>
#include <string.h>

#include "daemon/control_access.h"
#include "envd/query.h"
#include "rules/json_in.h"

#define AT_ONCE_MOST 64 /* sandboxes in one list */

struct asking {
	struct asking *next;
	struct conn *conn; /* NULL: it has gone */
	unsigned left;
	struct buf all;
	uint32_t seq[AT_ONCE_MOST];
	size_t n;
};

static void finish(struct front *f, struct asking *a)
{
	auto_buf body = { 0 };

	buf_puts(&body, "[");
	buf_add(&body, buf_text(&a->all), a->all.len);
	buf_puts(&body, "]");
	if (a->conn)
		conn_answer(a->conn, 200, "application/json", &body, NULL);
	for (struct asking **at = &f->asking; *at; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	buf_free(&a->all);
	free(a);
}

/* Its questions, as the keeper has written them: members of an array. */
static void asked(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct asking *a = f->asking;
	bool found = false;

	(void)fds;
	for (; a && !found; a = found ? a : a->next)
		for (size_t i = 0; i < a->n && !found; i++)
			found = a->seq[i] == j->q.seq;
	if (!a)
		return;
	if (result == 0 && *text)
		buf_printf(&a->all, "%s%s", a->all.len ? "," : "", text);
	if (--a->left == 0)
		finish(f, a);
}

void approvals_forget(struct front *f, const struct conn *c)
{
	for (struct asking *a = f->asking; a; a = a->next)
		if (a->conn == c)
			a->conn = NULL;
}

static bool is_wanted(struct conn *c, const struct sandbox *s, const char *id)
{
	const struct access_what what = access_of_sandbox(s);

	return s->asks && s->state == SANDBOX_RUNNING && (!*id || strcmp(s->id, id) == 0) &&
	       access_may(c, RIGHT_APPROVE, &what);
}

/* Asks the keeper about each sandbox. False: it has too much to do. */
static bool ask_all(struct conn *c, struct asking *a, const char *id)
{
	for (struct sandbox *s = c->front->sandboxes; s && a->n < AT_ONCE_MOST; s = s->next) {
		if (!is_wanted(c, s, id))
			continue;
		if (!jobs_ask(c->front, KEEPER_QUESTIONS, s, asked))
			return a->n > 0;
		a->seq[a->n++] = c->front->next_seq;
		a->left++;
	}
	c->denied = ACCESS_ALLOWED;
	return true;
}

void control_approvals(struct conn *c)
{
	struct asking *a = calloc(1, sizeof(*a));
	auto_buf id = { 0 };

	if (!a || query_get(c->http.req.query.s, c->http.req.query.n, "sandboxID", &id) < 0) {
		conn_refuse(c, a ? 400 : 500, a ? "the query cannot be understood" : "no memory");
		free(a);
		return;
	}
	a->conn = c;
	a->next = c->front->asking;
	c->front->asking = a;
	if (!ask_all(c, a, buf_text(&id))) {
		a->conn = NULL;
		conn_refuse(c, 503, "the server is busy");
		finish(c->front, a);
	} else if (!a->left) {
		finish(c->front, a);
	} else {
		c->state = CONN_WAIT;
		conn_flush(c);
	}
}

/* -- an answer */

static void answered(struct conn *c, int result, const char *text)
{
	if (result == -ENOENT)
		conn_refuse(c, 409, "the question is not there any more, or is answered");
	else if (result < 0)
		conn_refuse(c, 500, "the answer was not taken: %s", text);
	else
		conn_answer(c, 204, NULL, NULL, NULL);
}

static void took(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = sandbox_find(f, j->q.id);

	(void)fds;
	if (!s)
		return;
	s->busy = false;
	sandbox_answer_waiting(s, result, text);
}

/* {"answer":"once"|"run"|"time"|"deny","seconds":N} */
static bool read_answer(const struct conn *c, struct keeper_answer *ret)
{
	static const char *const words[] = { "once", "run", "time", "deny" };
	static const uint8_t answers[] = { WARD_ANSWER_ONCE, WARD_ANSWER_RUN, WARD_ANSWER_TIME,
					   WARD_ANSWER_DENY };
	struct json_level l;
	struct json_in j;
	const char *key;
	bool fine;

	json_in_init(&j, (const uint8_t *)buf_text(&c->body), c->body.len);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key)) {
			auto_buf word = { 0 };

			if (strcmp(key, "seconds") == 0) {
				char number[16] = "";
				const uint8_t *at = j.at;

				json_in_peek(&j);
				at = j.at;
				json_in_skip(&j);
				snprintf(number, sizeof(number), "%.*s", (int)(j.at - at), at);
				ret->seconds = (uint32_t)strtoul(number, NULL, 10);
				continue;
			}
			json_in_string(&j, &word);
			j.bad |= strcmp(key, "answer") != 0;
			for (size_t i = 0; i < ARRAY_LEN(words); i++)
				if (strcmp(buf_text(&word), words[i]) == 0)
					ret->answer = answers[i];
		}
	}
	fine = json_in_end(&j) && ret->answer;
	json_in_free(&j);
	return fine && (ret->answer == WARD_ANSWER_TIME) == (ret->seconds > 0) &&
	       ret->seconds <= 24 * 3600;
}

/* "SANDBOX:NUMBER" */
static bool read_id(struct conn *c, uint64_t *ret_number)
{
	char *colon = strchr(c->sandbox, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (!colon || !digits || digits > 18 || colon[1 + digits])
		return false;
	*ret_number = strtoull(colon + 1, NULL, 10);
	*colon = '\0';
	return true;
}

static void wait_for_answer(struct conn *c, struct sandbox *s)
{
	s->busy = true;
	sandbox_wait(s, c, answered);
}

void control_approve(struct conn *c)
{
	struct keeper_answer a = { 0 };
	struct sandbox *s;

	if (!read_id(c, &a.number)) {
		conn_refuse(c, 404, "there is no question with this id; it is SANDBOX:NUMBER");
		return;
	}
	s = control_find_mine(c);
	if (!s)
		return;
	if (!read_answer(c, &a))
		conn_refuse(c, 400, "answer: once, run, time (with seconds) or deny");
	else if (s->state != SANDBOX_RUNNING || !s->asks)
		conn_refuse(c, 409, "sandbox \"%s\" asks nothing now", s->id);
	else if (s->busy || !jobs_ask_answer(c->front, s, &a, took))
		conn_refuse(c, 503, "the server is busy with this sandbox");
	else
		wait_for_answer(c, s);
}
