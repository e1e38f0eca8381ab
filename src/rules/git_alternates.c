/*
 * What an objects/info/alternates may say. In: its bytes, untrusted. Out: the git directory whose
 * objects are borrowed, or nothing. Pure functions.
 */
#include "rules/git_alternates.h"

#include <string.h>

char *git_view_borrowed(const char *text, size_t n)
{
	static const char end[] = "/" GIT_VIEW_OBJECTS "\n";

	if (n <= sizeof(end) - 1 || n > 4096 || text[0] != '/' || memchr(text, '\0', n) ||
	    memchr(text, '\n', n - 1) ||
	    memcmp(text + n - (sizeof(end) - 1), end, sizeof(end) - 1) != 0)
		return NULL;
	return strndup(text, n - (sizeof(end) - 1));
}
