/*
 * Variables that a failed command missed. In: the end of its standard error, the caller's
 * environment. Out: a denial for each variable whose name stands there as a word, that the caller
 * has and the sandbox does not: "KeyError: 'DATABASE_URL'". Runs in the supervisor after the
 * sandbox is dead.
 *
 * The words are the sandbox's, and it can name what it likes: only the person who started the run
 * reads the answer, and values are never shown. One whose name sounds like a secret is offered as
 * a grant alone, which the command never sees.
 */
#include "run/box_internal.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "observe/complaint.h"
#include "policy/secret_path.h"

#define NAME_LEN_MIN 4
#define NAME_LEN_MAX 63
#define REPORTED_MAX 3

/* These lead to something of the host that is not inside: passing them on would not help. */
static const char *const leads_outside[] = {
	"SSH_AUTH_SOCK", "DISPLAY",         "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
	"XAUTHORITY",    "XDG_RUNTIME_DIR", "DOCKER_HOST",     "LD_LIBRARY_PATH",
	"LD_PRELOAD",    "OLDPWD",          "SHELL",           "SHLVL",
};

/* "DATABASE_URL": no word of a sentence, which a program would not write like that. */
static bool is_variable(const char *name)
{
	size_t n = strlen(name);

	return n >= NAME_LEN_MIN && n <= NAME_LEN_MAX && name[0] >= 'A' && name[0] <= 'Z' &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static bool is_inside(const struct plan *p, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->env.len; i++)
		if (strncmp(p->env.items[i], name, n) == 0 && p->env.items[i][n] == '=')
			return true;
	return false;
}

static bool is_outside(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(leads_outside); i++)
		if (strcmp(leads_outside[i], name) == 0)
			return true;
	return false;
}

static void report(struct box *b, const char *name)
{
	static const char why[] = "it is set outside, and the policy does not pass it on";
	struct ward_event v = event_make(EVENT_ENV_MISSING, ACTION_DENY, name);
	auto_buf what = { 0 }, remedy = { 0 };

	buf_printf(&what, "variable %s", name);
	if (secret_is_word(name))
		buf_printf(&remedy,
			   "--secret %s@HOST; requests to that host then carry it, and the "
			   "command never sees it",
			   name);
	else
		buf_printf(&remedy, "process.env: [\"%s\"]", name);
	if (what.failed || remedy.failed)
		return;
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&remedy));
}

void box_hear_variables(struct box *b)
{
	const struct buf *said = &b->streams.tail.kept;
	size_t reported = 0;

	if (!b->result->exit_code || b->limited || b->forwarded)
		return;
	for (char *const *line = environ; *line && reported < REPORTED_MAX; line++) {
		auto_free char *name = strndup(*line, strcspn(*line, "="));

		if (!name || !is_variable(name) || is_inside(b->plan, name) || is_outside(name) ||
		    !complaint_names((const uint8_t *)said->data, said->len, name))
			continue;
		report(b, name);
		reported++;
	}
}
