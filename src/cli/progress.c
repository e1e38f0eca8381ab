/*
 * Shows the progress of long work. In: counts. Out: one line on standard error, only where that is a terminal, written over
 * a few times a second and taken away at the end, so that nothing of it stays in a log or between a command's own lines.
 */
#include "cli/progress.h"

#include <inttypes.h>
#include <unistd.h>

#include "cli/cli.h"

static void show(struct progress *p unused_arg, const char *what, uint64_t done, uint64_t total)
{
	auto_buf out = { 0 };

	buf_puts(&out, "\r\033[K");
	if (what)
		buf_printf(&out, "ward: %s: %" PRIu64, what, done);
	if (what && total)
		buf_printf(&out, " of %" PRIu64 " (%" PRIu64 "%%)", total, done >= total ? 100 : done * 100 / total);
	say_err(&out);
}

struct progress *progress_for_terminal(struct progress *p, bool wanted)
{
	*p = (struct progress){ .show = show };
	return wanted && isatty(STDERR_FILENO) ? p : NULL;
}
