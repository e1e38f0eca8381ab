/*
 * Questions on the terminal. In: the text. Out: what a person typed, one line. Nothing is asked of
 * a pipe: the caller checks question_possible() first and has an answer of its own for that case.
 */
#include "cli/question.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/io.h"

bool question_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

int question_fail(struct ward_err *e)
{
	return ward_fail(e, ECANCELED, "the question was not answered; nothing was done");
}

int question_line(const char *question, char *ret, size_t size, struct ward_err *e)
{
	char line[512];
	size_t first, length;
	ssize_t n;

	(void)!io_write_all(STDERR_FILENO, question, strlen(question));
	while ((n = read(STDIN_FILENO, line, sizeof(line) - 1)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		return question_fail(e);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	first = strspn(line, " \t");
	length = strlen(line + first);
	while (length && strchr(" \t\r", line[first + length - 1]))
		length--;
	snprintf(ret, size, "%.*s", (int)length, line + first);
	return 0;
}

int question_yes(const char *question, bool fallback, bool *ret_yes, struct ward_err *e)
{
	char answer[16];

	for (int i = 0; i < QUESTION_TRIES; i++) {
		int r = question_line(question, answer, sizeof(answer), e);

		if (r < 0)
			return r;
		*ret_yes = *answer ? strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0
				   : fallback;
		if (!*answer || *ret_yes || strcasecmp(answer, "n") == 0 ||
		    strcasecmp(answer, "no") == 0)
			return 0;
	}
	return question_fail(e);
}
