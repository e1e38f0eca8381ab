/*
 * ward approve: the questions of this user's sandboxes. In: the register of sandboxes, as ward ps
 * reads it; the id of a question and an answer. Out: a list, or the answer at the sandbox's
 * supervisor, which asks the kernel who we are. Runs with the user's rights outside of every
 * sandbox. What is shown was escaped by the supervisor and checked by control.c.
 */
#include "cli/approve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "approve/approve.h"
#include "approve/group.h"
#include "base/io.h"
#include "base/json.h"
#include "cli/policy_write.h"
#include "cli/question.h"
#include "control/client_net.h"
#include "policy/suffix.h"
#include "policy/units.h"

#define APPROVE_TIME_SECONDS 600 /* "for a time", where no other is named */

/* The list of public suffixes, read once. */
static const struct buf *suffixes(void)
{
	static struct buf list;
	static bool tried;
	auto_fd fd = tried ? -1 : open(SUFFIX_LIST, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && io_read_all(fd, SUFFIX_LIST_MAX, &list) < 0)
		buf_free(&list);
	tried = true;
	return &list;
}

bool approve_group(const struct question *q, char *ret, size_t cap)
{
	return q->kind == QUESTION_CONNECT && !q->alone &&
	       group_of(buf_text(suffixes()), suffixes()->len, q->host, ret, cap);
}

static uint64_t left_ms(const struct question *q)
{
	uint64_t now = io_now_ms();

	return q->deadline_ms > now ? q->deadline_ms - now : 0;
}

void approve_put(const struct client_question *q, bool full, struct buf *out)
{
	buf_printf(out, "%s:%" PRIu64 "  %s", q->box, q->q.id, q->q.subject);
	if (q->q.count > 1)
		buf_printf(out, "  (%u connections)", q->q.count);
	buf_printf(out, "  %" PRIu64 "s left\n", left_ms(&q->q) / 1000);
	/* of a connection the subject says all but the warnings; what a request, a secret or a file
	 * is about stands in the details */
	for (size_t i = 0; i < QUESTION_DETAILS_MAX && *q->q.details[i]; i++)
		if (full || q->q.kind != QUESTION_CONNECT ||
		    strncmp(q->q.details[i], "warning", 7) == 0)
			buf_printf(out, "    %s\n", q->q.details[i]);
	if (!full)
		return;
	buf_printf(out, "    the rule that asks: %s\n", q->q.rule);
	if (*q->q.process)
		buf_printf(out, "    asked by: %s\n", q->q.process);
	if (*q->q.line)
		buf_printf(out, "    always adds to %s: %s\n", question_field(&q->q), q->q.line);
}

static void put_one(const struct client_question *c, struct json *j)
{
	const struct question *q = &c->q;
	char id[64];

	snprintf(id, sizeof(id), "%s:%" PRIu64, c->box, q->id);
	json_string(j, "id", id);
	json_string(j, "sandbox", c->box);
	json_string(j, "kind", question_kind_name(q->kind));
	json_string(j, "subject", q->subject);
	json_string(j, "host", q->host);
	json_uint(j, "port", q->port);
	json_uint(j, "count", q->count);
	json_uint(j, "left_ms", left_ms(q));
	json_string(j, "rule", q->rule);
	json_string(j, "line", q->line);
	json_begin_array(j, "details");
	for (size_t k = 0; k < QUESTION_DETAILS_MAX && *q->details[k]; k++)
		json_string(j, NULL, q->details[k]);
	json_end_array(j);
}

void approve_put_json(const struct client_question *q, const char *event, struct buf *out)
{
	struct json j = { .out = out };
	char group[sizeof(q->q.host)];

	json_begin_object(&j, NULL);
	json_string(&j, "event", event);
	put_one(q, &j);
	if (approve_group(&q->q, group, sizeof(group)))
		json_string(&j, "group", group);
	json_end_object(&j);
}

static void put_json(const struct client_questions *all, size_t silent, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_begin_array(&j, "questions");
	for (size_t i = 0; i < all->len; i++) {
		json_begin_object(&j, NULL);
		put_one(&all->items[i], &j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_uint(&j, "silent", silent);
	json_end_object(&j);
	buf_puts(out, "\n");
}

static int list(const struct options *o)
{
	struct client_questions all = { 0 };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	size_t silent;

	if (client_questions(&all, &silent, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		put_json(&all, silent, &out);
	} else {
		for (size_t i = 0; i < all.len; i++)
			approve_put(&all.items[i], true, &out);
		if (!all.len)
			buf_puts(&out, "no question waits for an answer\n");
		if (silent)
			buf_printf(&out, "%zu sandbox%s did not answer\n", silent,
				   silent == 1 ? "" : "es");
	}
	client_questions_clear(&all);
	return say_out(&out, EXIT_FINE);
}

/* -- answers */

/* The same checks as ward policy add, in the sandbox's workspace. */
static int write_policy(const struct options *o, const struct client_question *q,
			struct ward_err *e)
{
	struct policy_write how = { .file = o->policy_file, .yes = o->yes, .silent = o->json };
	struct box_info info = { 0 };
	auto_strv rules = { 0 };
	int r = client_find_alive(q->box, &info, e);

	how.dir = info.workspace;
	strv_add(&rules, q->q.line);
	if (r == 0)
		r = rules.failed ? ward_fail(e, ENOMEM, "out of memory")
				 : policy_write_rules(&how, question_field(&q->q), &rules, e);
	box_info_clear(&info);
	if (r != -ECANCELED)
		return r;
	ward_fail(e, ECANCELED, "the policy was not written, so the question still waits");
	return ward_remedy(e, "answer with --run, --once, --for TIME or --deny");
}

const char *approve_from(void)
{
	const char *name = NULL;

	for (int i = 0; i < 3 && !name; i++)
		name = ttyname(i);
	return name;
}

/* The rule of the group, with the ports of the question's own rule. */
static int group_line(const struct question *q, char *ret, size_t cap, struct ward_err *e)
{
	char group[sizeof(q->host)];
	const char *port =
		strncmp(q->line, q->host, strlen(q->host)) == 0 ? q->line + strlen(q->host) : NULL;

	if (!port || !approve_group(q, group, sizeof(group))) {
		ward_fail(e, ENOENT, "%s belongs to no group", q->subject);
		return ward_remedy(e, "a group is all that lies below one registered name, by the "
				      "list of public suffixes (Debian: apt install publicsuffix), "
				      "and has no host of approvals.never");
	}
	return (size_t)snprintf(ret, cap, "%s%s", group, port) < cap
		       ? 0
		       : ward_fail(e, ENAMETOOLONG, "the name of the group is too long");
}

/* The group's rule, from now on: the same as `ward net allow`. */
static int allow_group(const struct client_question *q, const char *line, uint64_t seconds,
		       struct ward_err *e)
{
	char rule[sizeof(q->q.line)], *lines[] = { rule };
	struct control_net now;
	struct client c = NO_CLIENT;
	struct box_info info = { 0 };
	int r = client_find_alive(q->box, &info, e);

	snprintf(rule, sizeof(rule), "%s", line);
	if (r == 0)
		r = client_connect(&info, &c, e);
	if (r == 0)
		r = client_net_change(&c, false, lines, 1, (unsigned)seconds, &now, e);
	client_close(&c);
	box_info_clear(&info);
	return r;
}

int approve_send(const struct options *o, const struct client_question *q,
		 enum question_answer answer, uint64_t seconds, struct ward_err *e)
{
	struct client_said said = { .answer = answer,
				    .seconds = seconds,
				    .via = o->webhook          ? QUESTION_VIA_WEBHOOK
					   : o->approve_socket ? QUESTION_VIA_SOCKET
					   : o->word_count     ? QUESTION_VIA_CONTROL
							       : QUESTION_VIA_WATCH,
				    .from = o->answer_from ? o->answer_from : approve_from() };
	struct client_question with = *q;
	int r = o->group ? group_line(&q->q, with.q.line, sizeof(with.q.line), e) : 0;

	if (r == 0 && answer == QUESTION_ALWAYS && !*with.q.line) {
		ward_fail(e, ENOENT,
			  *q->q.subject ? "%s:%" PRIu64
					  ": there is no rule that would allow this always"
					: "%s:%" PRIu64 ": this question does not wait any more",
			  q->box, q->q.id);
		return *q->q.subject ? ward_remedy(e, "answer with --run, --once, --for TIME or "
						      "--deny")
				     : -e->code;
	}
	if (r == 0 && answer == QUESTION_ALWAYS)
		r = write_policy(o, &with, e);
	if (r == 0)
		r = client_answer_question(q->box, q->q.id, &said, e);
	if (r == 0 && o->group)
		r = allow_group(q, with.q.line, seconds, e);
	return r;
}

/* "BOX:N", or "N" where only one sandbox has such a question. */
int approve_find_question(const char *word, struct client_question *ret, struct ward_err *e)
{
	struct client_questions all = { 0 };
	const char *colon = strrchr(word, ':');
	struct box_info info = { 0 };
	size_t found = 0, silent;
	uint64_t id = 0;

	if (units_parse_uint(colon ? colon + 1 : word, &id) < 0 || !id) {
		ward_fail(e, EINVAL, "%.80s is not the id of a question", word);
		return ward_remedy(e, "ward approve lists them: SANDBOX:NUMBER");
	}
	if (colon) {
		auto_free char *box = strndup(word, (size_t)(colon - word));

		if (!box || client_find_alive(box, &info, e) < 0)
			return box ? -e->code : ward_fail(e, ENOMEM, "out of memory");
	}
	if (client_questions(&all, &silent, e) < 0)
		return -e->code;
	for (size_t i = 0; i < all.len; i++)
		if (all.items[i].q.id == id && (!colon || strcmp(all.items[i].box, info.id) == 0)) {
			*ret = all.items[i];
			found++;
		}
	client_questions_clear(&all);
	if (!found && colon) { /* the supervisor knows whether there was one, and records it */
		*ret = (struct client_question){ .q = { .id = id } };
		snprintf(ret->box, sizeof(ret->box), "%s", info.id);
		found = 1;
	}
	box_info_clear(&info);
	if (found == 1)
		return 0;
	ward_fail(e, ENOENT,
		  found ? "%.80s: several sandboxes have a question with this number"
			: "%.80s: no question with this number is waiting",
		  word);
	return ward_remedy(e, "name it as ward approve lists it: SANDBOX:NUMBER");
}

static int answer(const struct options *o, enum question_answer how, uint64_t seconds)
{
	struct client_question q;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (approve_find_question(o->words[0], &q, &e) < 0)
		return say_error(&e, o->json, e.code == EINVAL ? EXIT_USAGE : EXIT_REFUSED);
	if (approve_send(o, &q, how, seconds, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "sandbox", q.box);
		json_uint(&j, "question", q.q.id);
		json_bool(&j, "allowed", how != QUESTION_DENY);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else {
		buf_printf(&out, "%s: %s\n", q.q.subject,
			   how == QUESTION_DENY ? "denied" : "allowed");
	}
	return say_out(&out, EXIT_FINE);
}

/* What can be asked for together; 0: fine. */
static int check_words(const struct options *o, enum question_answer how, struct ward_err *e)
{
	bool serves = o->approve_socket || o->webhook;

	if (o->word_count && !how)
		return ward_fail(e, EINVAL, "no answer given");
	if (!o->word_count && how && !(how == QUESTION_TIME && !o->json && !serves))
		return ward_fail(e, EINVAL, "no question given");
	if (o->watch && (o->word_count || o->json || serves))
		return ward_fail(e, EINVAL, "--watch takes no question and no --json");
	if (serves && (o->word_count || o->json))
		return ward_fail(e, EINVAL,
				 "--socket and --webhook take no question and no --json");
	if (!o->webhook != !o->key)
		return ward_fail(e, EINVAL, "--webhook and --key go together");
	if (o->group && how != QUESTION_RUN && how != QUESTION_TIME && how != QUESTION_ALWAYS)
		return ward_fail(e, EINVAL, "--group goes with --run, --for or --always");
	return 0;
}

int verb_approve(struct options *o)
{
	struct ward_err e = { 0 };
	uint64_t ms = 0;
	enum question_answer how = o->once       ? QUESTION_ONCE
				   : o->for_run  ? QUESTION_RUN
				   : o->for_time ? QUESTION_TIME
				   : o->always   ? QUESTION_ALWAYS
				   : o->deny     ? QUESTION_DENY
						 : 0;

	if (o->for_time && (units_parse_seconds(o->for_time, &ms) < 0 || ms < 1000 ||
			    ms / 1000 > APPROVE_SECONDS_MAX))
		ward_fail(&e, EINVAL, "--for %.80s: expected a time between a second and a week",
			  o->for_time);
	else if (check_words(o, how, &e) == 0)
		return o->approve_socket || o->webhook ? approve_serve(o)
		       : o->word_count                 ? answer(o, how, ms / 1000)
		       : o->watch || (!o->json && question_possible())
			       ? approve_watch(o, ms ? ms / 1000 : APPROVE_TIME_SECONDS)
			       : list(o);
	ward_remedy(&e, "ward approve; ward approve --watch; ward approve ID "
			"--once|--run|--for TIME|--always|--deny");
	return say_usage(&e, o);
}
