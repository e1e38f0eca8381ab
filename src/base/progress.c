/*
 * Progress of long work: the clock is read every 256 steps, and the callback that shows it is
 * called a few times a second, from the first second on. On a terminal that is one line of standard
 * error, taken away at the end, so that nothing of it stays in a log or between a command's own
 * lines.
 */
#include "base/progress.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

void progress_begin(struct progress *p, uint64_t total)
{
	if (!p)
		return;
	p->done = 0;
	p->total = total;
	p->due_ms = io_now_ms() + PROGRESS_QUIET_MS;
}

void progress_look(struct progress *p, const char *what)
{
	uint64_t now;

	if (!p || !p->show)
		return;
	now = io_now_ms();
	if (!p->due_ms)
		p->due_ms = now + PROGRESS_QUIET_MS;
	if (now < p->due_ms)
		return;
	p->due_ms = now + PROGRESS_EACH_MS;
	p->show(p, what, p->done, p->total);
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (!p || !p->shown)
		return;
	p->shown = false;
	p->show(p, NULL, 0, 0);
}

static void show_line(struct progress *p unused_arg, const char *what, uint64_t done,
		      uint64_t total)
{
	auto_buf out = { 0 };

	buf_puts(&out, "\r\033[K");
	if (what)
		buf_printf(&out, "ward: %s: %" PRIu64, what, done);
	if (what && total)
		buf_printf(&out, " of %" PRIu64 " (%" PRIu64 "%%)", total,
			   done >= total ? 100 : done * 100 / total);
	/* there is no reader */
	(void)!io_write_all(STDERR_FILENO, buf_text(&out), out.len);
}

struct progress *progress_for_terminal(struct progress *p, bool wanted)
{
	*p = (struct progress){ .show = show_line };
	return wanted && isatty(STDERR_FILENO) ? p : NULL;
}
