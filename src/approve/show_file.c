/*
 * Showing a host file that a process inside wants to open. In: what the supervisor has found at the
 * path (observe/file_ask.c). Out: texts of a struct question. The path is the host's, without
 * links; its names may be the sandbox's own choice, and so may the program's. Pure.
 */
#include <inttypes.h>
#include <string.h>

#include "approve/show.h"
#include "base/text.h"
#include "observe/file_ask.h"
#include "policy/secret_path.h"

void show_file(const struct file_asked *asked, const char *home, struct question *ret)
{
	auto_buf subject = { 0 };
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_FILE;
	ret->serial_first = asked->serial;
	memcpy(ret->exact, asked->exact, sizeof(ret->exact));
	memcpy(ret->like, asked->like, sizeof(ret->like));
	buf_printf(&subject, "read %s", asked->path);
	show_text(ret->subject, sizeof(ret->subject), subject.failed ? "?" : buf_text(&subject));
	snprintf(ret->rule, sizeof(ret->rule), "filesystem.ask");
	show_text(ret->process, sizeof(ret->process), asked->exe);
	if (secret_is_path(asked->path, home))
		snprintf(ret->details[n++], sizeof(ret->details[0]), "warning: a place of secrets");
	snprintf(ret->details[n++], sizeof(ret->details[0]), "%" PRIu64 " bytes", asked->bytes);
	snprintf(ret->details[n++], sizeof(ret->details[0]),
		 "allows: a copy of the file as it is now, to read");
	snprintf(ret->details[n], sizeof(ret->details[0]),
		 "a yes for the run is for this path, whatever is there then");
}
