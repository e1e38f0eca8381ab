/* Detached sandboxes as JSON. In: entries of the register, answers of ward-box. Out: members of an
 * object. Pure functions. */
#include "control/boxes_json.h"

void boxes_json(struct json *j, const struct box_info *i)
{
	json_string(j, "id", i->id);
	json_string(j, "name", i->name[0] ? i->name : NULL);
	json_string(j, "state", box_state_name(i->state));
	json_begin_array(j, "command");
	for (size_t k = 0; k < i->command.len; k++)
		json_string(j, NULL, i->command.items[k]);
	json_end_array(j);
	json_string(j, "workspace", i->workspace);
	json_bool(j, "foreground", i->foreground);
	json_string(j, "parent", i->parent[0] ? i->parent : NULL);
	json_int(j, "pid", i->pid);
	json_uint(j, "started_ms", i->started_ms);
	if (i->state == BOX_ENDED) {
		json_uint(j, "ended_ms", i->ended_ms);
		json_int(j, "exit_code", i->exit_code);
	}
}

void boxes_usage_json(struct json *j, const struct control_usage *u)
{
	json_uint(j, "cpu_ms", u->cpu_ms);
	json_uint(j, "memory_bytes", u->memory_bytes);
	json_uint(j, "memory_peak_bytes", u->memory_peak_bytes);
	json_uint(j, "pids", u->pids);
	json_uint(j, "disk_bytes", u->disk_bytes);
	json_uint(j, "output_bytes", u->output_bytes);
	json_uint(j, "uptime_ms", u->uptime_ms);
	json_uint(j, "denials", u->denials);
}
