/* What the supervisor is told about a view: lines "VIEW\tKIND\tPATH\tTEXT\n", each field escaped. */
#include "git/git.h"

#include <stdarg.h>
#include <string.h>

#include "lib/guard_internal.h"

void say(struct take *t, const char *kind, const char *path, const char *text)
{
	if (t->shows && strcmp(kind, "note") != 0)
		return;
	buf_printf(t->out, "%zu\t%s\t", t->number, kind);
	guard_escape(t->out, path);
	buf_puts(t->out, "\t");
	guard_escape(t->out, text);
	buf_puts(t->out, "\n");
}

void say_note(struct take *t, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (t->live)
		return;	/* the end says it */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(t, "note", "", text);
}
