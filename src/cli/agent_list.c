/*
 * ward agent ls: which agents there are. In: the profiles, the caller's PATH. Out: each profile
 * that names a program, with where the program is or how to get it. Only reads.
 */
#include "cli/agent.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "plan/profile.h"

static void put_text(const struct agent *a, struct buf *out)
{
	const char *install = agent_install(a->name);

	buf_printf(out, "%-13s ", a->name);
	if (a->file)
		text_escape(out, a->file);
	else if (install)
		buf_printf(out, "not installed; get it with %s", install);
	else
		buf_printf(out, "not installed: no %s in PATH", a->program);
	buf_puts(out, "\n");
}

static void put_json(const struct agent *a, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "name", a->name);
	json_string(j, "program", a->program);
	json_string(j, "found", a->file);
	json_string(j, "install", agent_install(a->name));
	json_end_object(j);
}

int agent_list(bool json)
{
	struct ward_err e = { 0 };
	auto_strv names = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (profile_names(&names, &e) < 0)
		return say_error(&e, json, EXIT_REFUSED);
	if (json)
		json_begin_list(&j, "agents");
	for (size_t i = 0; i < names.len; i++) {
		struct agent a;

		if (agent_open(names.items[i], &a, &e) < 0)
			return say_error(&e, json, EXIT_REFUSED);
		if (a.program && json)
			put_json(&a, &j);
		else if (a.program && (agent_is_known(a.name) || !agent_is_known(a.program)))
			put_text(&a, &out); /* and no second profile of a known agent */
		agent_close(&a);
	}
	if (json)
		json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}
