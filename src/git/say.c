/*
 * Reports to the supervisor about a view: lines "VIEW\tKIND\tPATH\tTEXT\n", each field escaped.
 * KIND is "refused" (a file for the quarantine), "lost" (what did not arrive) or "note".
 */
#include "git/git.h"

#include <stdarg.h>
#include <string.h>

#include "guard/guard_internal.h"

/* of one view; what is refused behind them goes with the view, and its number is reported */
#define REFUSED_MAX 200
#define NOTES_MAX 300
#define LOST_MAX 50 /* of the notes; standard error has them, too */

void say(struct take *t, const char *kind, const char *path, const char *text)
{
	bool lost = strcmp(kind, "lost") == 0, note = lost || strcmp(kind, "note") == 0;
	size_t *count = lost ? &t->lost_count : note ? &t->noted : &t->refused;

	if (t->shows && !note)
		return;
	if ((*count)++ >= (lost ? LOST_MAX : note ? NOTES_MAX : REFUSED_MAX))
		return;
	buf_printf(t->out, "%zu\t%s\t", t->number, kind);
	guard_escape(t->out, path);
	buf_puts(t->out, "\t");
	guard_escape(t->out, text);
	buf_puts(t->out, "\n");
}

static void say_text(struct take *t, const char *kind, const char *format, va_list args)
{
	char text[1024];

	if (t->live)
		return; /* the end says it */
	vsnprintf(text, sizeof(text), format, args);
	say(t, kind, "", text);
}

void say_note(struct take *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_text(t, "note", format, args);
	va_end(args);
}

void say_lost(struct take *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_text(t, "lost", format, args);
	va_end(args);
}

void say_rest(struct take *t)
{
	size_t refused = t->refused, noted = t->noted, lost = t->lost_count;

	t->lost_count = 0;
	if (refused > REFUSED_MAX)
		say_lost(t,
			 "git: and %zu more files of the private git directory of %s were not "
			 "imported",
			 refused - REFUSED_MAX, t->record.git_dir);
	noted = noted > NOTES_MAX ? noted - NOTES_MAX : 0;
	noted += lost > LOST_MAX ? lost - LOST_MAX : 0;
	if (noted)
		say_lost(t, "git: and %zu more notes about %s", noted, t->record.git_dir);
}
