/* Reports to the supervisor about a view: lines "VIEW\tKIND\tPATH\tTEXT\n", each field escaped. */
#include "git/git.h"

#include <stdarg.h>
#include <string.h>

#include "guard/guard_internal.h"

/* of one view; what is refused behind them goes with the view, and its number is reported */
#define REFUSED_MAX 200
#define NOTES_MAX 50

void say(struct take *t, const char *kind, const char *path, const char *text)
{
	bool note = strcmp(kind, "note") == 0;

	if (t->shows && !note)
		return;
	if ((note ? t->noted++ : t->refused++) >= (note ? NOTES_MAX : REFUSED_MAX))
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
		return; /* the end says it */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(t, "note", "", text);
}

void say_rest(struct take *t)
{
	size_t refused = t->refused, noted = t->noted;

	t->noted = 0;
	if (refused > REFUSED_MAX)
		say_note(t,
			 "git: and %zu more files of the private git directory of %s were not "
			 "imported",
			 refused - REFUSED_MAX, t->record.git_dir);
	if (noted > NOTES_MAX)
		say_note(t, "git: and %zu more notes about %s", noted - NOTES_MAX,
			 t->record.git_dir);
}
