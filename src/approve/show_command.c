/*
 * Showing a command line that waits. In: the supervisor's copy of it, which is what will be
 * started. Out: texts of a struct question. Every word was chosen by the sandbox: the whole is
 * escaped, and what does not fit into the subject goes on in the details; what fits nowhere is cut
 * in the middle, with a hash of the whole, and said to be. Pure.
 */
#include <string.h>

#include "approve/show.h"
#include "base/sha256.h"
#include "base/text.h"
#include "rules/command_rule.h"

#define LINE (sizeof(((struct question *)0)->details[0]) - 1)

/* Equal ones are one question, and one answer is for them all. */
static void digest(const struct command_said *said, const char *cwd, uint8_t ret[32])
{
	struct sha256 sum;

	sha256_begin(&sum);
	sha256_add(&sum, said->program, strlen(said->program) + 1);
	/* the first word is not passed on */
	sha256_add(&sum, said->words + strlen(said->words), said->words_len - strlen(said->words));
	sha256_add(&sum, cwd, strlen(cwd));
	sha256_end(&sum, ret);
}

static void put_words(const struct command_said *said, struct question *ret, size_t *n)
{
	auto_buf text = { 0 }, shown = { 0 };
	size_t room = QUESTION_DETAILS_MAX - 2 - *n, at = sizeof(ret->subject) - 1;

	command_text(said, &text);
	text_escape(&shown, text.failed ? "?" : buf_text(&text));
	if (shown.failed || shown.len < sizeof(ret->subject)) {
		show_text(ret->subject, sizeof(ret->subject), text.failed ? "?" : buf_text(&text));
		return;
	}
	if (shown.len > sizeof(ret->subject) - 1 + room * LINE) {
		show_text(ret->subject, sizeof(ret->subject), buf_text(&text));
		snprintf(ret->details[(*n)++], sizeof(ret->details[0]),
			 "warning: it is too long to be shown, of %zu characters", shown.len);
		return;
	}
	for (size_t i = 0; i < shown.len; i++) /* half of a sequence would be one of its own */
		if ((unsigned char)shown.data[i] >= 0x80)
			shown.data[i] = '?';
	snprintf(ret->subject, sizeof(ret->subject), "%s", buf_text(&shown));
	for (; at < shown.len; at += LINE)
		snprintf(ret->details[(*n)++], sizeof(ret->details[0]), "%s", shown.data + at);
}

void show_command(const struct command_said *said, const char *cwd, const char *input,
		  const char *rule, uint64_t serial, struct question *ret)
{
	char line[4096 + 32];
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_COMMAND;
	ret->serial_first = serial;
	digest(said, cwd, ret->exact);
	memcpy(ret->like, ret->exact, sizeof(ret->like));
	put_words(said, ret, &n);
	snprintf(line, sizeof(line), "in %s, standard input: %s", cwd, input);
	show_text(ret->details[n++], sizeof(ret->details[0]), line);
	if (n < QUESTION_DETAILS_MAX)
		snprintf(ret->details[n], sizeof(ret->details[0]),
			 "a yes for the run is for these words in this directory");
	snprintf(line, sizeof(line), "process.commands: %s", rule);
	show_text(ret->rule, sizeof(ret->rule), line);
}
