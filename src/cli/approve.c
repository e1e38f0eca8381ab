/*
 * ward approve: the questions of this user's sandboxes. In: the register of sandboxes, as ward ps
 * reads it; the id of a question and an answer. Out: a list, or the answer at the sandbox's
 * supervisor, which asks the kernel who we are. Runs with the user's rights outside of every
 * sandbox. What is shown was escaped by the supervisor and checked by control.c.
 */
#include "cli/approve.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "approve/approve.h"
#include "base/io.h"
#include "base/json.h"
#include "host/program.h"
#include "policy/units.h"

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
	for (size_t i = 0; i < QUESTION_DETAILS_MAX && *q->q.details[i]; i++)
		if (full || strncmp(q->q.details[i], "warning", 7) == 0)
			buf_printf(out, "    %s\n", q->q.details[i]);
	if (!full)
		return;
	buf_printf(out, "    the rule that asks: %s\n", q->q.rule);
	if (*q->q.process)
		buf_printf(out, "    asked by: %s\n", q->q.process);
	buf_printf(out, "    always adds to network.egress_allowlist: %s\n", q->q.line);
}

static void put_json(const struct client_questions *all, size_t silent, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_begin_array(&j, "questions");
	for (size_t i = 0; i < all->len; i++) {
		const struct question *q = &all->items[i].q;
		char id[64];

		snprintf(id, sizeof(id), "%s:%" PRIu64, all->items[i].box, q->id);
		json_begin_object(&j, NULL);
		json_string(&j, "id", id);
		json_string(&j, "sandbox", all->items[i].box);
		json_string(&j, "kind", "connect");
		json_string(&j, "subject", q->subject);
		json_string(&j, "host", q->host);
		json_uint(&j, "port", q->port);
		json_uint(&j, "count", q->count);
		json_uint(&j, "left_ms", left_ms(q));
		json_string(&j, "rule", q->rule);
		json_string(&j, "line", q->line);
		json_begin_array(&j, "details");
		for (size_t k = 0; k < QUESTION_DETAILS_MAX && *q->details[k]; k++)
			json_string(&j, NULL, q->details[k]);
		json_end_array(&j);
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

/* The same program and the same checks as ward policy add, in the sandbox's workspace. */
static int write_policy(const struct options *o, const struct client_question *q,
			struct ward_err *e)
{
	struct box_info info = { 0 };
	auto_strv argv = { 0 };
	int status = -1;
	pid_t pid;

	if (client_find_alive(q->box, &info, e) < 0)
		return -e->code;
	strv_add(&argv, "ward-explain");
	strv_add(&argv, "policy");
	strv_add(&argv, "add");
	if (o->yes)
		strv_add(&argv, "--yes");
	if (o->policy_file) {
		strv_add(&argv, "--policy");
		strv_add(&argv, o->policy_file);
	}
	strv_add(&argv, "network.egress_allowlist");
	strv_add(&argv, q->q.line);
	pid = argv.failed ? -1 : fork();
	if (pid == 0) {
		if (o->json) /* our own object is all that a program reads */
			dup2(STDERR_FILENO, STDOUT_FILENO);
		if (!o->policy_file && info.workspace && chdir(info.workspace) < 0)
			_exit(EXIT_REFUSED);
		(void)!program_become(argv.items, e);
		(void)say_error(e, o->json, EXIT_REFUSED);
		_exit(EXIT_REFUSED);
	}
	box_info_clear(&info);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	ward_fail(e, ECANCELED, "the policy was not written, and the question not answered");
	return ward_remedy(e, "answer with --run, --once, --for TIME or --deny");
}

int approve_send(const struct options *o, const struct client_question *q,
		 enum question_answer answer, uint64_t seconds, struct ward_err *e)
{
	if (answer == QUESTION_ALWAYS && write_policy(o, q, e) < 0)
		return -e->code;
	return client_answer_question(q->box, q->q.id, answer, seconds, e);
}

/* "BOX:N", or "N" where only one sandbox has such a question. */
static int find(const char *word, struct client_question *ret, struct ward_err *e)
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

	if (find(o->words[0], &q, &e) < 0)
		return say_error(&e, o->json, e.code == EINVAL ? EXIT_USAGE : EXIT_REFUSED);
	if (how == QUESTION_ALWAYS && !*q.q.line) {
		ward_fail(&e, ENOENT, "%s: this question does not wait any more", o->words[0]);
		return say_error(&e, o->json, EXIT_REFUSED);
	}
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
	else if (o->word_count && !how)
		ward_fail(&e, EINVAL, "no answer given");
	else if (!o->word_count && how)
		ward_fail(&e, EINVAL, "no question given");
	else if (o->watch && (o->word_count || o->json))
		ward_fail(&e, EINVAL, "--watch takes no question and no --json");
	else
		return o->watch        ? approve_watch(o)
		       : o->word_count ? answer(o, how, ms / 1000)
				       : list(o);
	ward_remedy(&e, "ward approve; ward approve --watch; ward approve ID "
			"--once|--run|--for TIME|--always|--deny");
	return say_usage(&e, o);
}
