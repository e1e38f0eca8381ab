/*
 * What a run itself reports: that it began and with which layers, which limits it reached, what was
 * moved into the quarantine, how it ended. In: struct box, its plan and result. Out: events
 * (event.h); nothing where there is no listener. Runs in the supervisor; lists are put together in
 * one buffer, because this is on the start path.
 */
#include "run/box_internal.h"

#include <string.h>
#include <unistd.h>

#include "event/event.h"
#include "event/table_names.h"
#include "limit/limits.h"
#include "protocol/gateway.h"
#include "run/detach.h"
#include "state/checkpoint.h"

/* The words of a command, each ended by a NUL; cut where an event would be. */
static void add_words(struct buf *out, char *const *words)
{
	for (; words && *words && out->len < EVENT_LINE_MAX; words++)
		buf_add(out, *words, strlen(*words) + 1);
}

static void add_layers(struct buf *out, const struct result *r, enum layer_state state)
{
	for (enum layer l = 0; l < LAYERS; l++)
		if (r->layers[l] == state)
			buf_add(out, layer_name(l), strlen(layer_name(l)) + 1);
}

static const char *command(const struct box *b)
{
	return b->plan->spec->argv && b->plan->spec->argv[0] ? b->plan->spec->argv[0] : NULL;
}

#define SAMPLE_MS 1000 /* shorter runs have none */
#define SAMPLE_MAX_MS 10000

void box_report_sample(struct box *b, uint64_t now)
{
	const struct usage *u = &b->result->usage;
	uint64_t between = (now - b->started_ms) / 10, wanted = box_alarm_sample_ms(b);
	struct ward_event v = event_make(EVENT_RUN_SAMPLE, ACTION_LOG, NULL);

	if (wanted && b->egress) /* the answer is in the next sample */
		(void)!egress_ask(b->egress, SHOW_METERS, 0, 0);
	b->sample_at_ms = now + (wanted                    ? wanted
				 : between < SAMPLE_MS     ? SAMPLE_MS
				 : between > SAMPLE_MAX_MS ? SAMPLE_MAX_MS
							   : between);
	if (b->dead || b->exited)
		return;
	listeners_look(&b->listeners, b->plan, now, b->result);
	if (b->run.cgroup)
		cgroup_usage(b->run.cgroup, &b->result->usage);
	event_number(&v, FIELD_DURATION_MS, now - b->started_ms);
	event_number(&v, FIELD_CPU_MS, u->cpu_ms);
	event_number(&v, FIELD_MEMORY, u->memory_bytes);
	event_number(&v, FIELD_PIDS, u->pids);
	event_number(&v, FIELD_DISK, u->disk_bytes);
	if (b->plan->net.on) {
		event_number(&v, FIELD_BYTES_IN, b->result->network.bytes_in);
		event_number(&v, FIELD_BYTES_OUT, b->result->network.bytes_out);
	}
	event_number(&v, FIELD_OUTPUT, b->streams.out_bytes);
	event_emit(b->result->events, &v);
}

static void report_restore(const struct box *b, const struct checkpoint *c)
{
	struct ward_event v = event_make(EVENT_STATE, ACTION_ALLOW, c->name);

	event_text(&v, FIELD_CHANGE, "restore");
	event_text(&v, FIELD_NAME, c->box);
	event_number(&v, FIELD_BYTES, c->bytes);
	event_text(&v, FIELD_DIGEST, c->sha256);
	event_emit(b->result->events, &v);
}

/* The run is the call of a tool: "TOOL\nAGENT\nFILE\nPOLICY". */
static void report_tool(const struct box *b)
{
	static const uint8_t fields[] = { FIELD_OBJECT, FIELD_FROM, FIELD_PATH, FIELD_POLICY };
	struct ward_event v = event_make(EVENT_TOOL, ACTION_ALLOW, NULL);
	const char *at = b->plan->spec->tool;

	for (size_t i = 0; at && i < ARRAY_LEN(fields); i++) {
		size_t n = strcspn(at, "\n");

		if (n)
			event_bytes(&v, (enum event_field)fields[i], at, n);
		at = at[n] ? at + n + 1 : NULL;
	}
	if (event_get(&v, FIELD_OBJECT))
		event_emit(b->result->events, &v);
}

void box_report_start(struct box *b)
{
	const struct plan *p = b->plan;
	const struct policy *policy = &p->spec->policy;
	static const char levels[][8] = { "full", "writes", "exec", "basic" },
			  modes[][12] = { "none", "restricted", "open" };
	struct ward_event v;
	auto_buf lists = { 0 };
	size_t argv, layers;

	if (!b->result->events)
		return;
	v = event_make(EVENT_RUN_START, ACTION_ALLOW, command(b));
	add_words(&lists, p->spec->argv);
	argv = lists.len;
	add_layers(&lists, b->result, LAYER_IN_FORCE);
	layers = lists.len - argv;
	add_layers(&lists, b->result, LAYER_ABSENT);
	if (!lists.failed && lists.data) {
		event_list(&v, FIELD_ARGV, lists.data, argv);
		event_list(&v, FIELD_LAYERS, lists.data + argv, layers);
		event_list(&v, FIELD_ABSENT, lists.data + argv + layers, lists.len - argv - layers);
	}
	event_text(&v, FIELD_ENGINE, b->result->engine);
	event_text(&v, FIELD_RUNG, p->level == LEVEL_LANDLOCK ? "landlock" : "namespaces");
	event_text(&v, FIELD_WORKSPACE, p->workspace);
	event_text(&v, FIELD_CWD, p->cwd);
	event_text(&v, FIELD_POLICY, p->spec->policy_file);
	event_text(&v, FIELD_PROFILE, p->spec->profile);
	event_text(&v, FIELD_NAME, b->detached ? b->detached->name : NULL);
	event_text(&v, FIELD_PARENT, p->spec->parent);
	event_text(&v, FIELD_LEVEL, levels[policy->audit_level]);
	event_text(&v, FIELD_NETWORK, modes[policy->net_mode]);
	event_number(&v, FIELD_UID, (uint64_t)getuid());
	event_emit(b->result->events, &v);
	report_tool(b);
	if (p->spec->restore)
		report_restore(b, p->spec->restore);
	b->sample_at_ms = b->started_ms + SAMPLE_MS;
}

static void report_limits(struct box *b)
{
	for (enum limit l = 0; l < LIMITS; l++) {
		const struct plan_limit *limit = &b->plan->limits[l];
		struct ward_event v;

		if (!b->result->usage.hit[l])
			continue;
		/* being slowed down is what a cpu limit is for */
		v = event_make(EVENT_LIMIT,
			       l != LIMIT_CPU || (b->limited && b->limit == l) ? ACTION_DENY
									       : ACTION_LOG,
			       limit_name(l));
		if (l == LIMIT_MEMORY && b->result->usage.guest_spent) {
			event_number(&v, FIELD_VALUE, b->plan->spec->policy.vm_memory);
			event_text(&v, FIELD_HELD_BY, "machine");
			event_text(&v, FIELD_REMEDY, "--set vm.memory=SIZE");
			event_emit(b->result->events, &v);
			continue;
		}
		if (limit->value != POLICY_NONE)
			event_number(&v, FIELD_VALUE, limit->value);
		if (l == LIMIT_DISK && limit->held_by == HELD_WATCH)
			event_number(&v, FIELD_DISK, b->result->usage.disk_left_bytes);
		event_text(&v, FIELD_HELD_BY, held_by_name(limit->held_by));
		event_text(&v, FIELD_REMEDY, limit_option(l));
		event_emit(b->result->events, &v);
	}
}

/* "path: reason" */
static void report_quarantine(struct box *b)
{
	for (size_t i = 0; i < b->result->quarantine.len; i++) {
		const char *item = b->result->quarantine.items[i], *colon = strstr(item, ": ");
		struct ward_event v = event_make(EVENT_FILE_QUARANTINE, ACTION_DENY, NULL);

		event_bytes(&v, FIELD_OBJECT, item, colon ? (size_t)(colon - item) : strlen(item));
		event_text(&v, FIELD_WHY, colon ? colon + 2 : NULL);
		event_text(&v, FIELD_REMEDY, "ward quarantine restore");
		event_emit(b->result->events, &v);
	}
}

static void report_notes(struct box *b)
{
	const struct strv *notes = &b->result->notes;

	for (size_t i = 0; i < notes->len; i++) {
		struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, notes->items[i]);

		event_emit(b->result->events, &v);
	}
}

static void report_refusal(struct box *b)
{
	const struct ward_err *e = &b->result->error;
	struct ward_event v =
		event_make(EVENT_RUN_REFUSED, ACTION_DENY, e->what[0] ? e->what : command(b));

	event_text(&v, FIELD_WHY, e->why);
	event_text(&v, FIELD_REMEDY, e->remedy[0] ? e->remedy : NULL);
	event_emit(b->result->events, &v);
}

void box_report_end(struct box *b)
{
	const struct result *r = b->result;
	struct ward_event v;

	if (!r->events)
		return;
	if (r->refused) {
		report_refusal(b);
		return;
	}
	report_limits(b);
	report_quarantine(b);
	report_notes(b);
	v = event_make(EVENT_RUN_END, b->limited || b->alarmed ? ACTION_DENY : ACTION_LOG,
		       command(b));
	event_text(&v, FIELD_WHY, r->error.code ? r->error.why : NULL);
	event_number(&v, FIELD_EXIT, (uint64_t)(r->exit_code < 0 ? 0 : r->exit_code));
	if (r->exit_signal > 0)
		event_number(&v, FIELD_SIGNAL, (uint64_t)r->exit_signal);
	event_number(&v, FIELD_DURATION_MS, r->duration_ms);
	event_number(&v, FIELD_CPU_MS, r->usage.cpu_ms);
	event_number(&v, FIELD_MEMORY_PEAK, r->usage.memory_peak_bytes);
	if (b->plan->net.on) {
		event_number(&v, FIELD_BYTES_IN, r->network.bytes_in);
		event_number(&v, FIELD_BYTES_OUT, r->network.bytes_out);
	}
	event_emit(r->events, &v);
}

void box_keep_record(struct box *b)
{
	struct ward_err e = { 0 };

	if (b->unrecorded || event_flush(b->result->events, &e) == 0)
		return;
	b->unrecorded = true;
	if (!b->result->error.code)
		b->result->error = e;
	strv_addf(&b->result->notes, "the run was ended: %s", e.why);
	box_kill(b);
}
