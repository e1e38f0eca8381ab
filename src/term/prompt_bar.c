/*
 * What the bar says. In: the question, the state of the keys, the time that is left, and of the
 * answer ALWAYS the change of the policy file. Out: lines that fit the screen's width: what is too
 * long loses its middle, and gets a hash of all of it. Every text came escaped; bar.c lets nothing
 * but printable ASCII through. Pure.
 */
#include "term/prompt_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/sha256.h"

/* Fits a text into so many columns: a long one loses its middle, and gets a hash of all of it. */
static void fit(char out[PROMPT_LINE], const char *text, size_t room)
{
	char hash[SHA256_HEX];
	size_t n = strlen(text), head;

	room = room < PROMPT_LINE ? room : PROMPT_LINE - 1;
	if (n <= room || room < 24) {
		snprintf(out, PROMPT_LINE, "%s", n <= room ? text : text + n - room);
		return;
	}
	sha256_hex(text, n, hash);
	room -= strlen("... (#12345678)");
	head = room / 3;
	snprintf(out, PROMPT_LINE, "%.*s...%s (#%.8s)", (int)head, text, text + n - (room - head),
		 hash);
}

/* What is asked for: "connect to db.test:5432". A kind without a row says it in its subject. */
static void put_what(const struct prompt *p, char out[PROMPT_LINE], size_t room)
{
	static const char *const verbs[QUESTION_KINDS] = { [QUESTION_CONNECT] = "connect to " };
	const struct question *q = &p->question;
	const char *verb = q->kind < QUESTION_KINDS && verbs[q->kind] ? verbs[q->kind] : "";
	char subject[PROMPT_LINE];
	size_t n = strlen(verb);

	if (n + strlen(q->subject) > room) { /* what is asked for counts more */
		verb = "";
		n = 0;
	}
	fit(subject, q->subject, room > n ? room - n : 0);
	snprintf(out, PROMPT_LINE, "%.16s%.280s", verb, subject);
}

/* What more is known, one line each; NULL: no more. */
static const char *more_about(const struct question *q, size_t at, char room[PROMPT_LINE])
{
	const char *const names[] = { "asked by: ", "the rule that asks: ", "always would add: " },
			  *const texts[] = { q->process, q->rule, q->line };

	for (size_t i = 0; i < QUESTION_DETAILS_MAX; i++)
		if (*q->details[i] && at-- == 0)
			return q->details[i];
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (*texts[i] && at-- == 0) {
			snprintf(room, PROMPT_LINE, "%s%s", names[i], texts[i]);
			return room;
		}
	return NULL;
}

static size_t count_more(const struct question *q)
{
	char room[PROMPT_LINE];
	size_t n = 0;

	while (more_about(q, n, room))
		n++;
	return n;
}

/* The keys that answer. */
static void put_answers(const struct prompt *p, char out[PROMPT_LINE], bool brief)
{
	const struct keys *k = &p->keys;
	/* nothing waits for a proposal: it cannot be allowed once */
	bool once = p->question.kind != QUESTION_PROPOSAL, seen = k->digits_seen == 2;
	const char *first = !once ? "" : brief ? "a " : seen ? "a once  " : "a once, ";
	/* where it would push out how to say no, it is not said */
	const char *last = !k->always || p->screen->cols < 76 ? ""
			   : seen                             ? "  A always"
							      : ", A always";

	if (brief && seen)
		snprintf(out, PROMPT_LINE, "%ss t d", first);
	else if (brief)
		snprintf(out, PROMPT_LINE, "%.2s: %ss t; d ?", k->digits, first);
	else if (seen)
		snprintf(out, PROMPT_LINE, "%ss this run  t 10 minutes%s  d deny", first, last);
	else
		snprintf(out, PROMPT_LINE,
			 "allow: %.2s and %ss this run, t 10 minutes%s   d deny  ? more", k->digits,
			 first, last);
}

/* What the keys do now. */
static void put_keys(const struct prompt *p, char out[PROMPT_LINE], bool brief)
{
	const struct keys *k = &p->keys;

	switch (k->state) {
	case KEYS_ANSWER:
		put_answers(p, out, brief);
		break;
	case KEYS_LOOK:
		snprintf(out, PROMPT_LINE, "reading the policy ...");
		break;
	case KEYS_SURE:
		snprintf(out, PROMPT_LINE,
			 !k->always    ? "the terminal is too small for this; any key: not now"
			 : k->seen_all ? "A changes the policy file; any other key: not now"
				       : "? shows the rest of the change; any other key: not now");
		break;
	case KEYS_SETTLE:
		snprintf(out, PROMPT_LINE, "%s", k->answer == QUESTION_DENY ? "denied" : "allowed");
		break;
	case KEYS_ARMING:
		snprintf(out, PROMPT_LINE, "...");
		break;
	case KEYS_NONE:
	case KEYS_NOTICE:
	default:
		snprintf(out, PROMPT_LINE, "%s",
			 *p->message ? p->message
			 : brief     ? "Ctrl-^"
				     : "Ctrl-^ after a pause answers; all other keys go to the "
				       "program");
	}
}

/* What ALWAYS would change, a page of it. */
static void put_change(struct prompt *p, uint64_t left)
{
	const struct prompt_change *c = &p->change;
	size_t pages = prompt_change_pages(p), page = p->keys.more % pages, cols = p->screen->cols;
	char file[PROMPT_LINE];

	fit(file, c->file, cols > 60 ? cols - 60 : 24);
	snprintf(p->lines[0], PROMPT_LINE,
		 " ward [%s]  always: %.160s, page %zu of %zu, %" PRIu64 " s left", p->word, file,
		 page + 1, pages, left);
	for (size_t i = 0; i < PROMPT_CHANGE_ROWS; i++) {
		size_t at = page * PROMPT_CHANGE_ROWS + i;

		fit(p->lines[1 + i], at < c->lines.len ? c->lines.items[at] : "", cols);
	}
}

/* The question itself. */
static void put_question(struct prompt *p, uint64_t left)
{
	const struct question *q = &p->question;
	char room[PROMPT_LINE], count[40] = "";
	size_t cols = p->screen->cols, mores = count_more(q), at;
	const char *more;

	if (p->waiting > 1)
		snprintf(count, sizeof(count), ", %zu more wait", p->waiting - 1);
	snprintf(p->lines[0], PROMPT_LINE, " ward [%s]  a question%s, %" PRIu64 " s left%s",
		 p->word, count, left, p->replay.len >= PROMPT_REPLAY_MAX ? ", output waits" : "");
	put_what(p, p->lines[1], cols > 14 ? cols - 14 : cols);
	if (q->count > 1)
		snprintf(p->lines[1] + strlen(p->lines[1]), 16, " (%" PRIu32 "x)",
			 q->count < 1000000 ? q->count : 1000000);
	at = mores ? p->keys.more % mores : 0;
	more = more_about(q, at, room);
	fit(p->lines[2], more ? more : "", cols);
}

struct bar prompt_bar(struct prompt *p, uint64_t now_ms)
{
	struct bar bar = { .one = p->one };
	const struct question *q = &p->question;
	uint64_t left = q->deadline_ms > now_ms ? (q->deadline_ms - now_ms) / 1000 : 0;
	char keys[PROMPT_LINE] = "", what[PROMPT_LINE];
	size_t cols = p->screen->cols, at;
	bool change = p->change.state == CHANGE_KNOWN &&
		      (p->keys.state == KEYS_LOOK || p->keys.state == KEYS_SURE);

	p->keys.always = prompt_change_possible(p);
	p->keys.seen_all = change && p->keys.more + 1 >= prompt_change_pages(p);
	p->change.composed = change && p->keys.always;
	if (change)
		put_change(p, left);
	else
		put_question(p, left);
	put_keys(p, p->lines[3], false);
	for (size_t i = 0; i < BAR_ROWS; i++)
		bar.lines[i] = p->lines[i];
	/* one row: the word, what is asked for, and the keys, which are never cut off */
	put_keys(p, keys, true);
	at = strlen(p->word) + strlen(keys) + 4;
	put_what(p, what, cols > at ? cols - at : 0);
	snprintf(p->one, PROMPT_LINE, "[%s] %.80s %.200s", p->word, keys, what);
	return bar;
}
