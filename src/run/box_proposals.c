/*
 * What programs inside ask with ward-ask (guest/ask.c), or over http://ward.internal/ (ask_http.c).
 * In: packets and requests of any process inside, which are copied once and read
 * (approve/proposal.c). Out: the rules, the denials so far, or a question
 * in the queue of all others; then the answer. Runs in the supervisor with the user's rights;
 * nothing here waits.
 *
 *   - A proposal changes nothing but by the answer of a person. What approvals.never names, an
 *     address that is not public, and what the policy hides are refused without a question; the
 *     first is looked for again where an answer takes effect (box_approve.c).
 *   - A yes for the run or for a time is a rule, as by `ward net allow`; the program that proposed
 *     it learns of the yes when the gateway has that rule. There is no yes for once: nothing waits.
 *     A path, and a host where there is no network, can only be put into the policy, for the next
 *     run.
 *   - At most PER_MINUTE proposals and TELLS_PER_MINUTE other requests are taken in a minute, and
 *     ASKERS_MAX processes may be connected: a sandbox cannot bury its own questions.
 *   - A program that hangs up takes its proposal back. Messages are received, and what they bring
 *     is closed, by threads, as in box_commands.c.
 */
#include "run/box_proposals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "approve/proposal_http.h"
#include "base/json.h"
#include "base/io.h"
#include "base/text.h"
#include "event/result.h"
#include "host/foreign_fds.h"
#include "plan/path_view.h"
#include "run/ask_http.h"
#include "run/peer.h"
#include "run/proposals.h"

#define ASKERS_MAX 16
#define PER_MINUTE 10
#define TELLS_PER_MINUTE 120
#define MINUTE_MS 60000
#define TOLD_MAX 65536 /* bytes of one answer: what a socket holds */
#define LISTENER 0
#define HTTP_LISTENER UINT64_MAX

enum state { ASKER_NEW, ASKER_WAITS, ASKER_TAKES };

/* One process that asks. */
struct asker {
	enum state state;
	int fd;
	uint64_t serial;
	uint64_t generation; /* TAKES: of the rules that it waits for */
	bool dropped;        /* while a message of its is received */
	bool proposes;
	struct ask_http *http; /* it asks over HTTP; owned */
	struct question q;
};

struct box_proposals {
	struct box *box;
	int epoll_fd, http_fd;      /* http_fd -1: there is no http://ward.internal/ */
	uint64_t serial, receiving; /* from whom a message is received right now; 0: from none */
	struct asker *askers[ASKERS_MAX]; /* owned */
	size_t count;
	uint64_t minute_ms; /* when the current one began */
	unsigned proposed, told;
	struct foreign_fds *foreign; /* owned */
	struct rules *rules;         /* where there is no network; owned */
};

const struct rules *box_proposals_rules(const struct box_proposals *p)
{
	return p ? p->rules : NULL;
}

int box_proposals_begin(struct box *b, struct ward_err *e)
{
	const struct inside_socket *live = b->plan->live->proposals;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = LISTENER };
	struct box_proposals *p;

	if (!live || !b->approve)
		return 0;
	p = b->proposals = calloc(1, sizeof(*p));
	if (!p)
		return ward_fail(e, ENOMEM, "out of memory");
	p->box = b;
	p->http_fd = -1;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0 || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, live->listen_fd, &event) < 0)
		return ward_fail_errno(e, "cannot answer for approvals.proposals");
	if (!b->egress && rules_compile(&b->plan->spec->policy, 1, &p->rules, e) < 0)
		return ward_wrap(e, "answering for approvals.proposals");
	if (foreign_fds_start(ASK_MAX + 1, &p->foreign, e) < 0)
		return ward_wrap(e, "answering for approvals.proposals");
	return 0;
}

void box_proposals_listen(struct box *b, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = HTTP_LISTENER };
	struct box_proposals *p = b->proposals;
	auto_fd listen_fd = fd;

	if (p && fd >= 0 && epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		p->http_fd = take_fd(&listen_fd);
}

int box_proposals_fd(const struct box *b)
{
	const struct box_proposals *p = b->proposals;

	if (!p)
		return -1;
	return p->receiving || foreign_fds_is_full(p->foreign) ? foreign_fds_fd(p->foreign)
							       : p->epoll_fd;
}

static void drop(struct box_proposals *p, struct asker *a)
{
	size_t at = 0;

	a->dropped = true;
	if (p->receiving == a->serial)
		return; /* on_received() does the rest */
	while (at < p->count && p->askers[at] != a)
		at++;
	if (at < p->count)
		p->askers[at] = p->askers[--p->count];
	(void)!epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, a->fd, NULL);
	foreign_fds_close(p->foreign, &a->fd);
	ask_http_free(a->http);
	free(a);
}

void box_proposals_end(struct box *b)
{
	struct box_proposals *p = b->proposals;

	if (!p)
		return;
	p->receiving = 0; /* what comes yet is closed when this process ends */
	while (p->count)
		drop(p, p->askers[0]);
	foreign_fds_close(p->foreign, &b->plan->live->proposals->listen_fd);
	foreign_fds_end(p->foreign);
	own_close_fd(&p->http_fd);
	own_close_fd(&p->epoll_fd);
	rules_free(p->rules);
	free(p);
	b->proposals = NULL;
}

/* -- answers to those who ask */

static bool send_one(const struct asker *a, enum ask_op op, int32_t value, const char *text,
		     size_t n)
{
	struct ask_message m = { .magic = ASK_MAGIC, .op = op, .a = value };
	char packet[ASK_MAX];

	memcpy(packet, &m, sizeof(m));
	memcpy(packet + sizeof(m), text, n);
	return send(a->fd, packet, sizeof(m) + n, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void tell_http(const struct asker *a, enum ask_status status, const char *text)
{
	static const char before[] = "ward-ask: ";
	unsigned code = status == ASK_ALLOWED  ? 200
			: status == ASK_DENIED ? 403
			: status == ASK_USAGE  ? 400
					       : 503;
	auto_buf out = { 0 }, message = { 0 };
	struct json j = { .out = &out };

	if (status == ASK_ALLOWED && !a->proposes) {
		ask_http_answer(a->fd, code, text);
		return;
	}
	text += strncmp(text, before, strlen(before)) == 0 ? strlen(before) : 0;
	buf_add(&message, text, strcspn(text, "\n"));
	json_begin_object(&j, NULL);
	json_bool(&j, "allowed", status == ASK_ALLOWED);
	json_string(&j, "message", message.failed ? "out of memory" : buf_text(&message));
	json_end_object(&j);
	buf_puts(&out, "\n");
	if (!out.failed)
		ask_http_answer(a->fd, code, buf_text(&out));
}

/* All that there is to say, and the end; the asker is dropped. One that does not read gets less. */
static void tell(struct box_proposals *p, struct asker *a, enum ask_status status, const char *text)
{
	const size_t room = ASK_MAX - sizeof(struct ask_message);
	enum ask_op op = status == ASK_ALLOWED ? ASK_OUT : ASK_ERR;
	size_t n = strlen(text);
	bool fine = !a->http;

	if (a->http)
		tell_http(a, status, text);
	for (size_t at = 0; at < n && at < TOLD_MAX && fine; at += room)
		fine = send_one(a, op, 0, text + at, n - at < room ? n - at : room);
	if (fine)
		(void)send_one(a, ASK_END, (int32_t)status, "", 0);
	drop(p, a);
}

static void tell_why(struct box_proposals *p, struct asker *a, enum ask_status status,
		     const char *why, const char *remedy)
{
	auto_buf line = { 0 };

	buf_printf(&line, "ward-ask: %s%s%s\n", why, *remedy ? "; " : "", remedy);
	tell(p, a, status, line.failed ? "ward-ask: out of memory\n" : buf_text(&line));
}

/* -- what they ask */

/* For the report, too: a sandbox that tries is worth a line. */
static void refuse_never(struct box_proposals *p, struct asker *a)
{
	auto_buf what = { 0 };

	buf_printf(&what, "proposal: %s", a->q.subject);
	if (!what.failed)
		result_deny(p->box->result, buf_text(&what), "approvals.never names it", "");
	tell_why(p, a, ASK_DENIED, "approvals.never names it: no answer can allow it", "");
}

static bool is_too_often(struct box_proposals *p, bool proposal)
{
	uint64_t now = io_now_ms();

	if (now - p->minute_ms >= MINUTE_MS) {
		p->minute_ms = now;
		p->proposed = p->told = 0;
	}
	return proposal ? p->proposed++ >= PER_MINUTE : p->told++ >= TELLS_PER_MINUTE;
}

/* Why no person is asked about a path; NULL: one is. */
static const char *settle_path(const struct box *b, const char *path, enum ask_status *ret)
{
	struct path_view view = path_view_of(b->plan);

	*ret = ASK_DENIED;
	switch (path_view_find(&view, path, NULL)) {
	case PATH_VIEW_HIDDEN:
		return "the policy hides it: nothing inside can propose it";
	case PATH_VIEW_READ:
	case PATH_VIEW_PROTECTED:
	case PATH_VIEW_WRITE:
		*ret = ASK_ALLOWED;
		return "it can be read already, if it exists";
	case PATH_VIEW_ABSENT:
	case PATH_VIEW_PRIVATE:
		break;
	}
	return NULL;
}

static const char *settle_port(const struct box *b, uint16_t port)
{
	const struct plan_net *net = &b->plan->net;

	for (size_t i = 0; i < net->published_count; i++)
		if (net->published[i].inside == port)
			return "it is published already";
	return NULL;
}

/* Makes the question; or why no person is asked, and what that means. */
static const char *settle(const struct box *b, const struct proposal *said, struct asker *a,
			  enum ask_status *ret)
{
	const struct rules *rules = b->egress ? egress_rules(b->egress) : NULL;
	bool path = said->verb == PROPOSAL_ALLOW && said->host.kind == HOST_NONE,
	     host = said->verb == PROPOSAL_ALLOW && !path;
	enum proposal_news news = host ? proposal_judge(rules, said) : PROPOSAL_UNLISTED;
	auto_free char *real = path ? realpath(said->path, NULL) : NULL;

	*ret = ASK_ALLOWED;
	proposal_show(rules, said, real, news, a->serial, &a->q);
	if (path)
		return settle_path(b, said->path, ret);
	if (!host)
		return settle_port(b, said->port);
	if (!proposal_is_public(said)) {
		*ret = ASK_DENIED;
		return "it is no public address: only who writes the policy can name it";
	}
	return news == PROPOSAL_NOTHING ? "the rules allow it already" : NULL;
}

static void propose(struct box_proposals *p, struct asker *a, const struct proposal *said)
{
	struct box *b = p->box;
	enum ask_status status;
	const char *settled = settle(b, said, a, &status);
	int r;

	if (settled) {
		tell_why(p, a, status, settled, "");
	} else if (box_is_never(b, &a->q)) {
		refuse_never(p, a);
	} else if (is_too_often(p, true)) {
		tell_why(p, a, ASK_DENIED, "too many proposals in this minute", "try again later");
	} else {
		peer_chain(a->fd, a->q.process, sizeof(a->q.process));
		a->state = ASKER_WAITS;
		r = box_ask(b, true, &a->q);
		if (r == -EACCES)
			refuse_never(p, a);
		else if (r < 0)
			tell_why(p, a, ASK_DENIED, "too many questions wait for an answer already",
				 "");
	}
}

static void take_said(struct box_proposals *p, struct asker *a, const struct proposal *said)
{
	auto_buf out = { 0 };

	a->proposes = said->verb >= PROPOSAL_ALLOW;
	if (a->proposes) {
		propose(p, a, said);
		return;
	}
	if (is_too_often(p, false)) {
		tell_why(p, a, ASK_FAILED, "too many requests in this minute", "try again later");
		return;
	}
	if (said->verb == PROPOSAL_HELP)
		buf_puts(&out, a->http ? proposal_http_usage : proposal_usage);
	else if (said->verb == PROPOSAL_RULES)
		box_tell_rules(p->box, said->json, &out);
	else
		box_tell_denials(p->box, said->json, &out);
	tell(p, a, ASK_ALLOWED, buf_text(&out));
}

static void take_request(struct box_proposals *p, struct asker *a, const struct foreign_message *m)
{
	struct proposal said;
	const char *wrong;

	if (m->len <= 0 || !proposal_read(m->bytes, (size_t)m->len, &said, &wrong)) {
		if (m->len <= 0 || !wrong)
			drop(p, a);
		else
			tell_why(p, a, ASK_USAGE, wrong, "see ward-ask --help");
		return;
	}
	take_said(p, a, &said);
}

/* -- answers of a person */

static int put_into_effect(struct box *b, const struct question *q, enum question_answer answer,
			   uint64_t seconds, uint64_t *ret_generation, struct ward_err *e)
{
	char line[sizeof(q->line)], *lines[] = { line };
	bool live = *q->host && b->egress && egress_rules(b->egress)->network != RULES_NONE;

	*ret_generation = 0;
	if (answer == QUESTION_ONCE) {
		ward_fail(e, EINVAL, "nothing waits for this rule, so it cannot be allowed once");
		return ward_remedy(e, live ? "answer with --run, --for TIME, --always or --deny"
					   : "answer with --always or --deny");
	}
	if (live) {
		memcpy(line, q->line, sizeof(line));
		return egress_change(b->egress, lines, 1, false, seconds, ret_generation, e);
	}
	if (answer == QUESTION_ALWAYS)
		return 0; /* the policy has it, for the next run */
	ward_fail(e, EOPNOTSUPP,
		  *q->host  ? "this run has no network"
		  : q->port ? "a port cannot be published while a sandbox runs"
			    : "a running sandbox cannot get another file");
	return ward_remedy(e, "--always adds it to the policy, for the next run; or --deny");
}

static void tell_answer(struct box_proposals *p, struct asker *a, enum question_answer answer,
			uint64_t generation)
{
	if (!answer) {
		tell_why(p, a, ASK_DENIED, "no answer came in time", "");
	} else if (answer == QUESTION_DENY) {
		tell_why(p, a, ASK_DENIED, "a person was asked and said no", "");
	} else if (generation) {
		a->generation = generation;
		a->state = ASKER_TAKES;
	} else {
		tell(p, a, ASK_ALLOWED, "allowed from the next run on\n");
	}
}

int box_proposals_answer(struct box *b, const struct question *q, enum question_answer answer,
			 uint64_t seconds, struct ward_err *e)
{
	struct box_proposals *p = b->proposals;
	uint64_t generation = 0;
	int r = answer && answer != QUESTION_DENY
			? put_into_effect(b, q, answer, seconds, &generation, e)
			: 0;

	for (size_t i = 0; p && r == 0 && i < p->count;) {
		struct asker *a = p->askers[i];

		if (a->state != ASKER_WAITS || a->dropped || a->serial > q->serial_last ||
		    a->q.port != q->port || strcmp(a->q.host, q->host) != 0 ||
		    memcmp(a->q.exact, q->exact, sizeof(q->exact)) != 0) {
			i++;
			continue;
		}
		tell_answer(p, a, answer, generation);
		i = 0; /* it may be another set now */
	}
	box_proposals_look(b);
	return r;
}

void box_proposals_look(struct box *b)
{
	struct box_proposals *p = b->proposals;

	for (size_t i = 0; p && i < p->count;) {
		struct asker *a = p->askers[i++];
		bool ended = !b->egress || egress_state(b->egress) == EGRESS_ENDED;

		if (a->state != ASKER_TAKES || a->dropped ||
		    (!ended && egress_generation(b->egress) < a->generation))
			continue;
		if (ended)
			tell_why(p, a, ASK_FAILED, "the network of this sandbox has ended", "");
		else
			tell(p, a, ASK_ALLOWED, "allowed\n");
		i = 0;
	}
}

/* -- what comes */

static struct asker *find_asker(struct box_proposals *p, uint64_t serial)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->askers[i]->serial == serial)
			return p->askers[i];
	return NULL;
}

static void on_message(struct box_proposals *p, struct asker *a, const struct foreign_message *got)
{
	if (a->dropped) {
		drop(p, a);
	} else if (got->len == -EAGAIN || got->len == -EINTR) {
		return;
	} else if (a->state == ASKER_NEW) {
		take_request(p, a, got);
	} else if (got->len <= 0) {
		if (a->state == ASKER_WAITS)
			(void)!box_ask(p->box, false, &a->q);
		drop(p, a);
	}
}

/* Nothing of what came along is wanted. */
static void on_received(struct box_proposals *p, struct foreign_message *got)
{
	struct asker *a = got->fd < 0 ? NULL : find_asker(p, got->serial);

	if (got->fd >= 0)
		p->receiving = 0;
	if (a)
		on_message(p, a, got);
	for (size_t i = 0; i < got->fd_count; i++)
		foreign_fds_close(p->foreign, &got->fds[i]);
	foreign_message_free(p->foreign, got);
}

/* One that asks over HTTP has sent something, or is gone. */
static void on_http(struct box_proposals *p, struct asker *a)
{
	struct proposal said;
	unsigned status = 0;
	const char *why = "";
	int r;

	if (a->state != ASKER_NEW) {
		if (ask_http_waits(a->fd))
			return;
		if (a->state == ASKER_WAITS)
			(void)!box_ask(p->box, false, &a->q);
		drop(p, a);
		return;
	}
	r = ask_http_read(a->http, a->fd, &said, &status, &why);
	if (r > 0) {
		take_said(p, a, &said);
	} else if (r < 0) {
		if (r == -1)
			ask_http_answer(a->fd, status, why);
		drop(p, a);
	}
}

static void take_asker(struct box_proposals *p, bool http)
{
	auto_fd fd = accept4(http ? p->http_fd : p->box->plan->live->proposals->listen_fd, NULL,
			     NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = p->serial + 1 };
	struct asker *a = fd < 0 ? NULL : calloc(1, sizeof(*a));

	if (!a) {
		foreign_fds_close(p->foreign, &fd);
		return;
	}
	a->serial = ++p->serial;
	a->fd = take_fd(&fd);
	a->http = http ? ask_http_create() : NULL;
	if (p->count == ASKERS_MAX || (http && !a->http)) {
		tell_why(p, a, ASK_FAILED, "too many processes ask at one time", "try again later");
		return;
	}
	p->askers[p->count++] = a;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, a->fd, &event) < 0)
		drop(p, a);
}

void box_proposals_handle(struct box *b)
{
	struct box_proposals *p = b->proposals;
	struct foreign_message got;
	struct epoll_event event;
	struct asker *a;

	while (foreign_fds_next(p->foreign, &got))
		on_received(p, &got);
	if (p->receiving || foreign_fds_is_full(p->foreign) ||
	    epoll_wait(p->epoll_fd, &event, 1, 0) != 1)
		return;
	if (event.data.u64 == LISTENER || event.data.u64 == HTTP_LISTENER) {
		take_asker(p, event.data.u64 == HTTP_LISTENER);
		return;
	}
	a = find_asker(p, event.data.u64);
	if (a && a->http)
		on_http(p, a);
	if (!a || a->http)
		return;
	p->receiving = a->serial;
	foreign_fds_receive(p->foreign, a->fd, a->serial);
}
