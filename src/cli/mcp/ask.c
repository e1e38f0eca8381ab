/*
 * Questions to a person about calls of tools with approval: always. In: what a call's process is
 * about to run, bound and checked. Out: a yes or no for that process, which waits for it. A client
 * that can show questions is asked by elicitation, or, in the stateless revision, by
 * input_required; otherwise, or where the operator wants that, the question waits for ward approve
 * (queue.c). A yes is for what was shown: a retry that would run anything else is asked about anew.
 * No answer in time is a no, and so is everything that is not a plain yes.
 *
 * The state that a client brings back is a random number of ours that stands for one question, once
 * and for a while: there is nothing in it to forge, and nothing to use twice.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/io.h"
#include "mcp/say.h"
#include "tools/question.h"

#define STATES_MAX 256
#define STATE_MS 600000
#define STATE_DIGITS 64
#define QUESTION_BYTES_MAX 65536 /* of its text */
#define MARK '?'                 /* a question's first byte: no run's id begins with it */

struct state {
	char digits[STATE_DIGITS + 1]; /* "": it is free */
	uint8_t about[SHA256_BYTES];
	uint64_t end_ms;
};

/* -- in the call's process */

int ask_server(const struct invoke_request *r, const struct tools_call *call, struct ward_err *e)
{
	const struct asker *a = (const struct asker *)r;
	auto_buf text = { 0 }, record = { 0 };
	uint32_t n;
	char said;

	tools_question(r, call, &text);
	n = (uint32_t)text.len;
	buf_add(&record, &(char){ MARK }, 1);
	buf_add(&record, &n, sizeof(n));
	buf_add(&record, buf_text(&text), text.len);
	if (text.failed || record.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (text.len > QUESTION_BYTES_MAX)
		return ward_fail(e, E2BIG,
				 "%s needs a person's agreement, and the call is too long "
				 "to be shown",
				 r->tool->head.name);
	if (io_write_all(a->fd, record.data, record.len) < 0 ||
	    io_read_exactly(a->fd, &said, 1) < 0)
		return ward_fail(e, EACCES,
				 "%s needs a person's agreement, and no person was asked",
				 r->tool->head.name);
	if (said == 'y')
		return 0;
	ward_fail(e, EACCES, "%s needs a person's agreement: %s", r->tool->head.name,
		  said == 't' ? "no answer came in time" : "the answer is no");
	return ward_remedy(e, said == 't' ? "ask the user to answer, with ward approve if the "
					    "client shows no question"
					  : "do not repeat the call; tell the user");
}

/* -- states */

static struct state *free_state(struct server *s)
{
	uint64_t now = io_now_ms();
	struct state *oldest;

	if (!s->states)
		s->states = calloc(STATES_MAX, sizeof(*s->states));
	oldest = s->states;
	for (size_t i = 0; s->states && i < STATES_MAX; i++) {
		struct state *one = &s->states[i];

		if (!*one->digits || one->end_ms <= now)
			return one;
		if (one->end_ms < oldest->end_ms)
			oldest = one;
	}
	return oldest;
}

static bool make_state(struct server *s, const struct work *w, char ret[STATE_DIGITS + 1])
{
	struct state *state = free_state(s);
	uint8_t random[STATE_DIGITS / 2];

	if (!state || getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(state->digits + 2 * i, 3, "%02x", random[i]);
	memcpy(state->about, w->asked, sizeof(state->about));
	state->end_ms = io_now_ms() + STATE_MS;
	memcpy(ret, state->digits, sizeof(state->digits));
	return true;
}

/* What the state stands for; it is used up. */
static bool take_state(struct server *s, const char *digits, uint8_t ret[SHA256_BYTES])
{
	for (size_t i = 0; s->states && *digits && i < STATES_MAX; i++) {
		struct state *one = &s->states[i];

		if (strcmp(one->digits, digits) != 0)
			continue;
		*one->digits = '\0';
		memcpy(ret, one->about, sizeof(one->about));
		return one->end_ms > io_now_ms();
	}
	return false;
}

/* {action: "accept", content: {approve: true}} and nothing less. */
static bool is_yes(struct mcp_span answer)
{
	struct mcp_span action, content, approve;

	return mcp_get(answer, "action", &action) && mcp_is(action, "accept") &&
	       mcp_get(answer, "content", &content) && mcp_get(content, "approve", &approve) &&
	       mcp_type(approve) == 't';
}

void ask_read_retry(const struct request *r, struct work *w)
{
	struct mcp_span state, responses, answer;
	auto_buf digits = { 0 };

	if (!r->modern || !mcp_get(r->message->params, "requestState", &state) ||
	    !mcp_text(state, &digits) ||
	    !mcp_get(r->message->params, "inputResponses", &responses) ||
	    !mcp_get(responses, "approve", &answer))
		return;
	if (take_state(r->peer->server, buf_text(&digits), w->said_about))
		w->said = is_yes(answer) ? RETRY_YES : RETRY_NO;
}

/* -- asking */

static void put_form(const char *text, struct json *j)
{
	json_string(j, "message", text);
	buf_puts(j->out, ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"approve\":"
			 "{\"type\":\"boolean\",\"title\":\"Allow this call\",\"default\":false}},"
			 "\"required\":[\"approve\"]}");
}

static void ask_by_retry(struct server *s, struct work *w, const char *text)
{
	char digits[STATE_DIGITS + 1];
	auto_buf result = { 0 };
	struct json j = { .out = &result };

	if (!make_state(s, w, digits)) {
		ask_tell(w, false, false);
		return;
	}
	json_begin_object(&j, NULL);
	json_string(&j, "resultType", "input_required");
	json_begin_object(&j, "inputRequests");
	json_begin_object(&j, "approve");
	json_string(&j, "method", "elicitation/create");
	json_begin_object(&j, "params");
	json_string(&j, "mode", "form");
	put_form(text, &j);
	json_end_object(&j);
	json_end_object(&j);
	json_end_object(&j);
	json_string(&j, "requestState", digits);
	json_end_object(&j);
	work_answer(s, w, &result);
}

static void ask_by_request(struct server *s, struct work *w, const char *text)
{
	auto_buf params = { 0 }, line = { 0 };
	struct json j = { .out = &params };
	char id[32];

	w->question = ++s->last_question;
	w->asking = ASKING_CLIENT;
	snprintf(id, sizeof(id), "\"ward-%llu\"", (unsigned long long)w->question);
	json_begin_object(&j, NULL);
	put_form(text, &j);
	json_end_object(&j);
	mcp_put_request(&line, id, "elicitation/create", buf_text(&params));
	line.failed |= params.failed;
	w->peer->send(w->peer, w->stream, SENT_MESSAGE, 0, &line);
}

static size_t count_asking(const struct server *s)
{
	size_t count = 0;

	for (const struct work *w = s->works; w; w = w->next)
		count += w->asking != ASKING_NOT;
	return count;
}

static bool asks_client(const struct server *s, const struct work *w)
{
	const char *who = s->options->approvals;

	return w->elicits && (who ? strcmp(who, "client") == 0 : !s->options->http);
}

static void ask(struct server *s, struct work *w, const char *text)
{
	struct ward_err e = { 0 };

	if (w->said && memcmp(w->said_about, w->asked, sizeof(w->asked)) == 0) {
		ask_tell(w, w->said == RETRY_YES, false);
		return;
	}
	if (count_asking(s) >= WORKS_ASKING_MAX) {
		ask_tell(w, false, false);
		return;
	}
	w->ask_end_ms = io_now_ms() + w->catalog->ask_ms;
	if (asks_client(s, w) && w->modern) {
		ask_by_retry(s, w, text);
		return;
	}
	if (asks_client(s, w)) {
		ask_by_request(s, w, text);
	} else if (queue_ask(s, w, text, &e) == 0) {
		w->asking = ASKING_QUEUE;
	} else {
		fprintf(stderr, "ward mcp serve: no person can be asked: %s\n", e.why);
		ask_tell(w, false, false);
		return;
	}
	s->running--; /* its place is another's meanwhile */
}

void ask_take(struct server *s, struct work *w)
{
	uint32_t n;

	if (w->asking || !w->answer.len || *w->answer.data != MARK)
		return;
	if (w->answer.len < 1 + sizeof(n))
		return;
	memcpy(&n, w->answer.data + 1, sizeof(n));
	if (w->answer.len - 1 - sizeof(n) >= n) {
		auto_buf text = w->answer;
		struct sha256 sum;

		w->answer = (struct buf){ 0 };
		sha256_begin(&sum);
		sha256_add(&sum, w->offer->name, strlen(w->offer->name) + 1);
		sha256_add(&sum, text.data + 1 + sizeof(n), n);
		sha256_end(&sum, w->asked);
		ask(s, w, text.data + 1 + sizeof(n));
	}
}

void ask_tell(struct work *w, bool yes, bool late)
{
	if (w->asking != ASKING_NOT)
		w->peer->server->running++;
	w->asking = ASKING_NOT;
	/* a process that has gone has not got it, and says so by its end */
	(void)!write(w->fd, yes ? "y" : late ? "t" : "n", 1);
}

/* -- answers */

static struct work *find_asked(const struct peer *p, const char *id)
{
	char own[32];

	for (struct work *w = p->server->works; w; w = w->next) {
		snprintf(own, sizeof(own), "\"ward-%llu\"", (unsigned long long)w->question);
		if (w->peer == p && w->asking == ASKING_CLIENT && strcmp(own, id) == 0)
			return w;
	}
	return NULL;
}

void ask_answered(struct peer *p, const struct mcp_message *m)
{
	struct work *w = find_asked(p, m->id);

	if (w && !w->cancelled)
		ask_tell(w, m->kind == MCP_RESULT && is_yes(m->body), false);
}

/* Neither the client nor the queue has to answer any more. */
void ask_withdraw(struct server *s, struct work *w)
{
	auto_buf params = { 0 }, line = { 0 };

	if (w->asking == ASKING_QUEUE)
		queue_withdraw(s, w);
	if (w->asking == ASKING_CLIENT) {
		buf_printf(&params, "{\"requestId\":\"ward-%llu\",\"reason\":\"too late\"}",
			   (unsigned long long)w->question);
		mcp_put_notification(&line, "notifications/cancelled", buf_text(&params));
		line.failed |= params.failed;
		w->peer->send(w->peer, w->stream, SENT_MESSAGE, 0, &line);
	}
	if (w->asking != ASKING_NOT)
		s->running++;
	w->asking = ASKING_NOT;
}

int ask_on_time(struct server *s, uint64_t now)
{
	int wait = -1;

	for (struct work *w = s->works; w; w = w->next) {
		if (w->asking != ASKING_CLIENT)
			continue;
		if (now >= w->ask_end_ms) {
			ask_withdraw(s, w);
			ask_tell(w, false, true);
			continue;
		}
		wait = serve_sooner(wait, (int)(w->ask_end_ms - now));
	}
	return wait;
}

void ask_end(struct server *s)
{
	free(s->states);
	s->states = NULL;
}
