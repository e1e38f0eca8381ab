/*
 * Showing a command line that waits. In: the supervisor's copy of it, which is what will be
 * started. Out: texts of a struct question. Every word was chosen by the sandbox: the whole is
 * escaped, and what does not fit into the subject goes on in the details, in lines that say so;
 * what fits nowhere is cut in the middle, with a hash of the whole, and said to be. What is shown,
 * and which pipe or file is meant, decides whether two questions are one. Pure.
 */
#include <string.h>

#include "approve/show.h"
#include "base/sha256.h"
#include "base/text.h"
#include "rules/command_rule.h"

#define LINE (sizeof(((struct question *)0)->details[0]) - 1)
#define GOES_ON " ..."
#define MORE "words go on: " /* no argument can look like another line of the question */
#define OTHER_LINES 5        /* directory, 0-2, what a yes for the run is for */

static void add_text(struct sha256 *sum, const char *text)
{
	sha256_add(sum, text, strlen(text) + 1);
}

/* What an answer for the run does not tell apart: which pipe it is. A file stays that file. */
static void add_kind(struct sha256 *sum, const struct command_place *place, int fd)
{
	const char *where = place->where[fd];

	sha256_add(sum, where, *where == '/' ? strlen(where) : strcspn(where, ":"));
	add_text(sum, *where == '/' ? place->exact[fd] : "");
}

/* exact: equal ones are one question, and one answer is for them all. like: what an answer for the
 * run covers. */
static void digest(const struct command_said *said, const struct command_place *place, bool exact,
		   uint8_t ret[32])
{
	struct sha256 sum;

	sha256_begin(&sum);
	add_text(&sum, said->program);
	/* the first word is not passed on */
	sha256_add(&sum, said->words + strlen(said->words), said->words_len - strlen(said->words));
	add_text(&sum, place->where[COMMAND_DIRECTORY]);
	add_text(&sum, place->exact[COMMAND_DIRECTORY]);
	for (int fd = 0; fd < 3; fd++) {
		if (!exact) {
			add_kind(&sum, place, fd);
			continue;
		}
		add_text(&sum, place->where[fd]);
		add_text(&sum, place->exact[fd]);
	}
	if (exact)
		sha256_add(&sum, said->variables, said->variables_len);
	sha256_end(&sum, ret);
}

static void put_words(const struct command_said *said, struct question *ret, size_t *n)
{
	const size_t each = LINE - strlen(MORE), first = sizeof(ret->subject) - sizeof(GOES_ON);
	auto_buf text = { 0 }, shown = { 0 };
	size_t room = QUESTION_DETAILS_MAX - OTHER_LINES - *n;

	command_text(said, &text);
	text_escape(&shown, text.failed ? "?" : buf_text(&text));
	if (shown.failed || shown.len < sizeof(ret->subject)) {
		show_text(ret->subject, sizeof(ret->subject), text.failed ? "?" : buf_text(&text));
		return;
	}
	if (shown.len > first + room * each) {
		show_text(ret->subject, sizeof(ret->subject), buf_text(&text));
		snprintf(ret->details[(*n)++], sizeof(ret->details[0]),
			 "warning: it is too long to be shown, of %zu characters", shown.len);
		return;
	}
	for (size_t i = 0; i < shown.len; i++) /* half of a sequence would be one of its own */
		if ((unsigned char)shown.data[i] >= 0x80)
			shown.data[i] = '?';
	snprintf(ret->subject, sizeof(ret->subject), "%.*s" GOES_ON, (int)first, shown.data);
	for (size_t at = first; at < shown.len; at += each)
		snprintf(ret->details[(*n)++], sizeof(ret->details[0]), MORE "%.*s", (int)each,
			 shown.data + at);
}

static void put_line(struct question *ret, size_t *n, const char *label, const char *value)
{
	auto_buf line = { 0 };

	buf_printf(&line, "%s: %s", label, value);
	show_text(ret->details[(*n)++], sizeof(ret->details[0]),
		  line.failed ? "?" : buf_text(&line));
}

static void put_place(const struct command_place *place, struct question *ret, size_t *n)
{
	bool same = strcmp(place->where[1], place->where[2]) == 0 &&
		    strcmp(place->exact[1], place->exact[2]) == 0;

	put_line(ret, n, "directory", place->where[COMMAND_DIRECTORY]);
	put_line(ret, n, "standard input", place->where[0]);
	put_line(ret, n, same ? "standard output and error" : "standard output", place->where[1]);
	if (!same)
		put_line(ret, n, "standard error", place->where[2]);
}

void show_command(const struct command_said *said, const struct command_place *place,
		  const char *rule, uint64_t serial, struct question *ret)
{
	auto_buf line = { 0 };
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_COMMAND;
	ret->serial_first = serial;
	digest(said, place, true, ret->exact);
	digest(said, place, false, ret->like);
	put_words(said, ret, &n);
	put_place(place, ret, &n);
	snprintf(ret->details[n], sizeof(ret->details[0]),
		 "a yes for the run is for these words, directory and files, and whatever comes "
		 "through pipes");
	buf_printf(&line, "process.commands: %s", rule);
	show_text(ret->rule, sizeof(ret->rule), line.failed ? "?" : buf_text(&line));
}
