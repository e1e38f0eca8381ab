/*
 * Showing a call of a tool that waits for a person. In: its text, in which everything that a model
 * chose is quoted and escaped. Out: texts of a struct question: what does not fit into the subject
 * goes on in the details, in lines that say so; what fits nowhere is cut in the middle, with a hash
 * of the whole, and said to be. Each call is a question of its own: a yes is for one. Pure.
 */
#include <string.h>

#include "approve/show.h"
#include "base/sha256.h"
#include "base/text.h"

#define LINE (sizeof(((struct question *)0)->details[0]) - 1)
#define MORE "goes on: " /* no argument can look like another line of the question */
#define GOES_ON " ..."

void show_tool(const char *text, uint64_t number, struct question *ret)
{
	const size_t each = LINE - strlen(MORE), first = sizeof(ret->subject) - sizeof(GOES_ON);
	struct sha256 sum;
	auto_buf shown = { 0 };
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_TOOL;
	ret->serial_first = number;
	sha256_begin(&sum);
	sha256_add(&sum, text, strlen(text));
	sha256_add(&sum, &number, sizeof(number));
	sha256_end(&sum, ret->exact);
	snprintf(ret->rule, sizeof(ret->rule), "approval: always");
	text_escape(&shown, text);
	if (shown.failed || shown.len < sizeof(ret->subject) ||
	    shown.len > first + QUESTION_DETAILS_MAX * each) {
		if (shown.failed || shown.len >= sizeof(ret->subject))
			snprintf(ret->details[0], sizeof(ret->details[0]),
				 "warning: it is too long to be shown, of %zu characters",
				 shown.len);
		show_text(ret->subject, sizeof(ret->subject), shown.failed ? "?" : text);
		return;
	}
	for (size_t i = 0; i < shown.len; i++) /* half of a sequence would be one of its own */
		if ((unsigned char)shown.data[i] >= 0x80)
			shown.data[i] = '?';
	snprintf(ret->subject, sizeof(ret->subject), "%.*s" GOES_ON, (int)first, shown.data);
	for (size_t at = first; at < shown.len; at += each)
		snprintf(ret->details[n++], sizeof(ret->details[0]), MORE "%.*s", (int)each,
			 shown.data + at);
}
