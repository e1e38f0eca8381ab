/*
 * The result of a run, and the two ways of telling it. In: what box.c noted. Out: the report as one
 * line of JSON, and a summary for a person. Runs in the supervisor with the user's rights after
 * everything inside is dead. Names in it may have been chosen by the sandbox: JSON and text are
 * escaped here, so nothing can forge a line or act on a terminal. A report that lost a piece for
 * want of memory says so.
 */
#include "event/result.h"

#include <inttypes.h>
#include <string.h>

#include "base/err_text.h"
#include "base/json.h"
#include "base/text.h"
#include "event/table_names.h"
#include "guard/guard_sweep.h"
#include "policy/units.h"

#define DENIALS_KEPT 1000
#define SECRET_NOTES_MAX 64

struct limit_text {
	const char *unit, *option, *message;
};

static struct limit_text limit_text(enum limit l)
{
	switch (l) {
#define LIMIT(id, name, unit, member, option, message)                                             \
	case LIMIT_##id:                                                                           \
		return (struct limit_text){ unit, option, message };
#include "limits.def"
	case LIMITS:
		break;
	}
	return (struct limit_text){ "", "", "" };
}

void result_secret(struct result *r, const char *text)
{
	static const char begin[] = "secrets: ";
	auto_buf note = { 0 };
	size_t ours = 0;

	buf_printf(&note, "%s%s", begin, text);
	for (size_t i = 0; i < r->notes.len; i++) {
		if (strcmp(r->notes.items[i], buf_text(&note)) == 0)
			return;
		ours += strncmp(r->notes.items[i], begin, strlen(begin)) == 0;
	}
	if (ours >= SECRET_NOTES_MAX)
		return;
	strv_add(&r->notes, buf_text(&note));
	strv_add(&r->loud, buf_text(&note));
}

void result_deny(struct result *r, const char *what, const char *why, const char *remedy)
{
	struct denial *grown;

	for (size_t i = 0; i < r->denial_count; i++)
		if (r->denials[i].what && strcmp(r->denials[i].what, what) == 0 &&
		    r->denials[i].why && strcmp(r->denials[i].why, why) == 0) {
			r->denials[i].count++;
			return;
		}
	if (r->denial_count >= DENIALS_KEPT)
		return;
	grown = reallocarray(r->denials, r->denial_count + 1, sizeof(*grown));
	if (!grown)
		return;
	r->denials = grown;
	r->denials[r->denial_count++] = (struct denial){
		.what = strdup(what),
		.why = strdup(why),
		.remedy = strdup(remedy),
		.count = 1,
	};
}

void result_explain(struct result *r, const char *what, const char *why, const char *remedy)
{
	result_deny(r, what, why, remedy);
	for (size_t i = 0; i < r->denial_count; i++)
		r->denials[i].explains |=
			r->denials[i].what && strcmp(r->denials[i].what, what) == 0;
}

void result_layer_note(struct result *r, enum layer l, enum layer_state s, const char *note)
{
	r->layers[l] = s;
	free(r->layer_notes[l]);
	r->layer_notes[l] = note ? strdup(note) : NULL;
}

void result_clear(struct result *r)
{
	for (size_t i = 0; i < r->denial_count; i++) {
		free(r->denials[i].what);
		free(r->denials[i].why);
		free(r->denials[i].remedy);
		free(r->denials[i].option);
	}
	free(r->denials);
	for (size_t i = 0; i < LAYERS; i++)
		free(r->layer_notes[i]);
	strv_free(&r->quarantine);
	guard_news_clear(&r->news);
	strv_free(&r->notes);
	strv_free(&r->approved);
	strv_free(&r->loud);
	*r = (struct result){ 0 };
}

static void json_limits(struct json *j, const struct result *r, const struct plan *p)
{
	json_begin_object(j, "limits");
	for (enum limit l = 0; p && l < LIMITS; l++) {
		json_begin_object(j, limit_name(l));
		if (p->limits[l].value == POLICY_NONE)
			json_null(j, "value");
		else
			json_uint(j, "value", p->limits[l].value);
		json_string(j, "unit", limit_text(l).unit);
		json_string(j, "held_by", held_by_name(p->limits[l].held_by));
		json_bool(j, "hit", r->usage.hit[l]);
		if (l == LIMIT_DISK && r->usage.hit[l] && p->limits[l].held_by == HELD_WATCH) {
			json_uint(j, "left_bytes", r->usage.disk_left_bytes);
			json_uint(j, "removed_bytes", r->usage.disk_removed_bytes);
		}
		json_end_object(j);
	}
	json_end_object(j);
}

static void json_layers(struct json *j, const struct result *r)
{
	json_begin_object(j, "layers");
	for (enum layer l = 0; l < LAYERS; l++) {
		json_begin_object(j, layer_name(l));
		json_bool(j, "in_force", r->layers[l] == LAYER_IN_FORCE);
		json_string(j, "note", r->layer_notes[l]);
		json_end_object(j);
	}
	json_end_object(j);
}

static void json_denials(struct json *j, const struct result *r)
{
	json_begin_array(j, "denials");
	for (size_t i = 0; i < r->denial_count; i++) {
		json_begin_object(j, NULL);
		json_string(j, "what", r->denials[i].what);
		json_string(j, "why", r->denials[i].why);
		json_string(j, "remedy", r->denials[i].remedy);
		json_string(j, "option", r->denials[i].option);
		json_uint(j, "count", r->denials[i].count);
		json_end_object(j);
	}
	json_end_array(j);
}

static void json_strings(struct json *j, const char *key, const struct strv *a,
			 const struct strv *b)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < a->len; i++)
		json_string(j, NULL, a->items[i]);
	for (size_t i = 0; b && i < b->len; i++)
		if (!strv_has(a, b->items[i]))
			json_string(j, NULL, b->items[i]);
	json_end_array(j);
}

static void json_steps(struct json *j, const struct timing *t)
{
	json_begin_array(j, "steps");
	for (size_t i = 0; i < t->count; i++) {
		const struct timing_step *s = &t->steps[i];

		json_begin_object(j, NULL);
		json_string(j, "name", s->name);
		json_string(j, "by", s->inside ? "sandbox" : "ward");
		json_uint(j, "at_us", (s->began_ns - t->origin_ns) / 1000);
		json_uint(j, "took_us", (s->ended_ns - s->began_ns) / 1000);
		json_end_object(j);
	}
	json_end_array(j);
}

/* One entry for the workspace of a run under review; nothing where changes were direct. */
static void json_changes(struct json *j, const struct result *r, const struct plan *p)
{
	const struct result_changes *c = &r->changes;

	json_begin_array(j, "changes");
	if (c->reviewed) {
		json_begin_object(j, NULL);
		json_string(j, "workspace", p ? p->workspace : NULL);
		json_string(j, "review", r->run_id);
		if (c->counted) {
			json_uint(j, "added", c->added);
			json_uint(j, "changed", c->changed);
			json_uint(j, "deleted", c->deleted);
		}
		if (c->apply) {
			json_uint(j, "applied", c->applied);
			json_uint(j, "left", c->left);
		}
		json_end_object(j);
	}
	json_end_array(j);
}

static void json_network(struct json *j, const struct result *r, const struct plan *p)
{
	if (!p || !p->net.on)
		return;
	json_begin_object(j, "network");
	json_uint(j, "connections", r->network.connections);
	json_uint(j, "bytes_in", r->network.bytes_in);
	json_uint(j, "bytes_out", r->network.bytes_out);
	json_uint(j, "names", r->network.names);
	json_uint(j, "denied", r->network.denied);
	if (r->network.spent)
		units_json_money(j, "spent", r->network.spent);
	json_uint(j, "generation", r->network.generation);
	json_end_object(j);
}

void result_json(const struct result *r, const struct plan *p, struct buf *out)
{
	struct json j = { .out = out };

	if (r->refused) {
		err_json(&r->error, out);
		return;
	}
	json_begin_object(&j, NULL);
	json_string(&j, "run", r->run_id);
	json_string(&j, "engine", r->engine ? r->engine : p ? p->engine : NULL);
	json_string(&j, "wall", r->inner);
	json_begin_object(&j, "exit");
	json_int(&j, "code", r->exit_code);
	if (r->exit_signal)
		json_int(&j, "signal", r->exit_signal);
	else
		json_null(&j, "signal");
	json_end_object(&j);
	json_uint(&j, "duration_ms", r->duration_ms);
	json_uint(&j, "memory_peak_bytes", r->usage.memory_peak_bytes);
	json_uint(&j, "cpu_ms", r->usage.cpu_ms);
	json_limits(&j, r, p);
	json_layers(&j, r);
	json_denials(&j, r);
	json_network(&j, r, p);
	json_changes(&j, r, p);
	json_strings(&j, "quarantine", &r->quarantine, NULL);
	json_strings(&j, "steers", &r->news.steers, NULL);
	json_strings(&j, "links_out", &r->news.leaving, NULL);
	if (r->approved.len)
		json_strings(&j, "approved", &r->approved, NULL);
	json_strings(&j, "notes", &r->notes, p ? &p->notes : NULL);
	if (r->timing && r->timing->on)
		json_steps(&j, r->timing);
	if (r->error.code) {
		json_begin_object(&j, "error");
		json_string(&j, "what", r->error.what);
		json_string(&j, "why", r->error.why);
		json_string(&j, "remedy", r->error.remedy);
		json_end_object(&j);
	}
	json_end_object(&j);
}

static void format_value(const char *unit, uint64_t value, char *out, size_t n)
{
	if (strcmp(unit, "bytes") == 0)
		units_format_size(value, out, n);
	else if (strcmp(unit, "ms") == 0)
		units_format_ms(value, out, n);
	else if (strcmp(unit, "millicpus") == 0)
		snprintf(out, n, "%g cpus", (double)value / 1000);
	else
		snprintf(out, n, "%" PRIu64, value);
}

/* "--memory 2048Mi": the option that moves the limit, with twice its value. */
static void remedy_option(const struct limit_text *t, uint64_t value, struct buf *out)
{
	size_t name = strcspn(t->option, "=");
	uint64_t twice = value > UINT64_MAX / 4 ? value : value * 2;

	buf_printf(out, "%.*s%s", (int)name, t->option, t->option[name] ? "=" : " ");
	if (value == POLICY_NONE)
		buf_puts(out, "none");
	else if (strcmp(t->unit, "bytes") == 0 && twice >= 1 << 20)
		buf_printf(out, "%" PRIu64 "Mi", (twice + (1 << 20) - 1) >> 20);
	else if (strcmp(t->unit, "ms") == 0 || strcmp(t->unit, "millicpus") == 0)
		buf_printf(out, "%g", (double)twice / 1000);
	else
		buf_printf(out, "%" PRIu64, twice);
}

/* ": 70 MiB are left, 6 MiB more than allowed" and what was removed again. */
static void add_left(const struct usage *u, uint64_t limit, struct buf *out)
{
	char left[48], more[48], removed[48];

	units_format_size(u->disk_left_bytes, left, sizeof(left));
	units_format_size(u->disk_left_bytes > limit ? u->disk_left_bytes - limit : 0, more,
			  sizeof(more));
	units_format_size(u->disk_removed_bytes, removed, sizeof(removed));
	buf_printf(out, ": %s remain", left);
	if (u->disk_left_bytes > limit)
		buf_printf(out, ", %s more than allowed", more);
	if (u->disk_removed_files)
		buf_printf(out, ", the %zu file%s written last (%s) %s removed",
			   u->disk_removed_files, u->disk_removed_files == 1 ? "" : "s", removed,
			   u->disk_removed_files == 1 ? "was" : "were");
}

/* "; remedy: --allow a.example (policy: network.egress_allowlist: [...])" */
static void text_remedy(const struct denial *d, struct buf *out)
{
	if (!d->remedy || !*d->remedy) {
		if (d->what && strncmp(d->what, "system call ", 12) == 0)
			buf_puts(out, "; no option allows it");
		return;
	}
	buf_puts(out, "; remedy: ");
	text_escape(out, d->option ? d->option : d->remedy);
	if (!d->option)
		return;
	buf_puts(out, " (policy: ");
	text_escape(out, d->remedy);
	buf_puts(out, ")");
}

void result_stopped_text(const struct result *r, const struct plan *p, struct buf *out)
{
	bool stopped = r->exit_code == 124 || r->exit_code == 137;

	if (p && p->live && p->live->views && p->live->views->left)
		buf_printf(out,
			   "ward: git inside can read but not write %zu repositories of the "
			   "workspace: ward makes private copies of at most %d\n",
			   p->live->views->left, GIT_VIEWS_MAX);
	for (enum limit l = 0; l < LIMITS; l++) {
		struct limit_text t = limit_text(l);
		char value[48] = "";

		if (!r->usage.hit[l] || (l == LIMIT_CPU && !stopped))
			continue; /* being slowed down is what a cpu limit is for */
		if (l == LIMIT_MEMORY && r->usage.machine_short)
			t.message = "the machine ran short of memory, and its kernel holds more "
				    "than is allowed here; this sandbox may not be the cause";
		buf_printf(out, "ward: %s: %s", stopped ? "stopped" : "limit reached", t.message);
		if (l == LIMIT_MEMORY && r->usage.guest_spent && p) {
			format_value(t.unit, p->spec->policy.vm_memory, value, sizeof(value));
			buf_printf(out,
				   " (limit vm.memory %s, held by the machine); remedy: --set "
				   "vm.memory=SIZE\n",
				   value);
			continue;
		}
		if (p && p->limits[l].value != POLICY_NONE) {
			format_value(t.unit, p->limits[l].value, value, sizeof(value));
			buf_printf(out, " (limit %s, held by %s)", value,
				   held_by_name(p->limits[l].held_by));
		}
		if (l == LIMIT_DISK && p && p->limits[l].held_by == HELD_WATCH)
			add_left(&r->usage, p->limits[l].value, out);
		buf_puts(out, "; remedy: ");
		remedy_option(&t, p ? p->limits[l].value : POLICY_NONE, out);
		buf_puts(out, "\n");
	}
	for (size_t i = 0; i < r->denial_count; i++) {
		const struct denial *d = &r->denials[i];

		if (!d->explains || !d->what || !d->why || !d->remedy)
			continue;
		buf_puts(out, "ward: ");
		text_escape(out, d->what);
		buf_printf(out, ": %s", d->why);
		text_remedy(d, out);
		buf_puts(out, "\n");
	}
}

static void text_layers(const struct result *r, struct buf *out)
{
	buf_puts(out, "  layers:\n");
	for (enum layer l = 0; l < LAYERS; l++) {
		buf_printf(out, "    %-16s  %s", layer_name(l),
			   r->layers[l] == LAYER_IN_FORCE ? "in force" : "absent");
		if (r->layer_notes[l]) {
			buf_puts(out, ": ");
			text_escape(out, r->layer_notes[l]);
		}
		buf_puts(out, "\n");
	}
}

/* ", 14 of 15 layers (not cgroup)" */
static void text_layers_brief(const struct result *r, struct buf *out)
{
	const char *before = " (not ";
	unsigned count = 0;

	for (enum layer l = 0; l < LAYERS; l++)
		count += r->layers[l] == LAYER_IN_FORCE;
	buf_printf(out, ", %u of %d layers", count, LAYERS);
	for (enum layer l = 0; l < LAYERS; l++)
		if (r->layers[l] != LAYER_IN_FORCE) {
			buf_printf(out, "%s%s", before, layer_name(l));
			before = ", ";
		}
	buf_puts(out, count < LAYERS ? ")" : "");
}

/* Two columns of times: the sandbox builds itself while ward does something else. */
static void text_steps(const struct timing *t, struct buf *out)
{
	buf_puts(out, "  steps, in ms:          at    took\n");
	for (size_t i = 0; i < t->count; i++) {
		const struct timing_step *s = &t->steps[i];
		uint64_t at_us = (s->began_ns - t->origin_ns) / 1000,
			 took_us = (s->ended_ns - s->began_ns) / 1000;

		buf_printf(out, "    %-16s%4" PRIu64 ".%03u%4" PRIu64 ".%03u  %s\n",
			   s->inside ? "in the sandbox" : "ward", at_us / 1000,
			   (unsigned)(at_us % 1000), took_us / 1000, (unsigned)(took_us % 1000),
			   s->name);
	}
}

static void text_limits(const struct result *r, const struct plan *p, struct buf *out)
{
	buf_puts(out, "  limits:\n");
	for (enum limit l = 0; l < LIMITS; l++) {
		char value[48] = "off";

		if (p->limits[l].value != POLICY_NONE)
			format_value(limit_text(l).unit, p->limits[l].value, value, sizeof(value));
		buf_printf(out, "    %-16s  %s", limit_name(l), value);
		if (p->limits[l].value != POLICY_NONE)
			buf_printf(out, ", held by %s", held_by_name(p->limits[l].held_by));
		buf_puts(out, r->usage.hit[l] ? ", reached\n" : "\n");
	}
}

static void text_notes(const struct strv *notes, const struct strv *but, struct buf *out)
{
	for (size_t i = 0; i < notes->len; i++) {
		if (but && strv_has(but, notes->items[i]))
			continue;
		buf_puts(out, "  note: ");
		text_escape(out, notes->items[i]);
		buf_puts(out, "\n");
	}
}

#define DENIALS_SHOWN 12 /* lines; ward explain has all of them */

/* Whether both are answered by the same option, for the same reason: several processes of one
 * program. */
static bool is_alike(const struct denial *a, const struct denial *b)
{
	return a->option && b->option && a->why && b->why && strcmp(a->option, b->option) == 0 &&
	       strcmp(a->why, b->why) == 0;
}

/* Whether one before it says the same. */
static bool is_repeat(const struct result *r, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (!r->denials[i].explains && is_alike(&r->denials[i], &r->denials[at]))
			return true;
	return false;
}

/* Of it and of those that say the same. */
static uint64_t count_alike(const struct result *r, size_t at)
{
	uint64_t count = r->denials[at].count;

	for (size_t i = at + 1; i < r->denial_count; i++)
		if (!r->denials[i].explains && is_alike(&r->denials[i], &r->denials[at]))
			count += r->denials[i].count;
	return count;
}

static void text_denials(const struct result *r, const char *before, struct buf *out)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < r->denial_count; i++) {
		const struct denial *d = &r->denials[i];
		uint64_t count = count_alike(r, i);

		if (d->explains || is_repeat(r, i)) /* said already */
			continue;
		if (shown++ >= DENIALS_SHOWN) {
			left++;
			continue;
		}
		buf_printf(out, "%sdenied: ", before);
		text_escape(out, d->what ? d->what : "?");
		if (count > 1)
			buf_printf(out, " (%" PRIu64 " times)", count);
		if (d->why && *d->why) {
			buf_puts(out, ": ");
			text_escape(out, d->why);
		}
		text_remedy(d, out);
		buf_puts(out, "\n");
	}
	if (left)
		buf_printf(out, "%sdenied: %zu more, see ward explain %s\n", before, left,
			   r->run_id);
}

#define DENIALS_IN_LINE 3

/* The same of a command that succeeded, in one line: "name a.example (--allow a.example)". */
static void text_denials_brief(const struct result *r, struct buf *out)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < r->denial_count; i++) {
		const struct denial *d = &r->denials[i];

		if (d->explains || is_repeat(r, i))
			continue;
		if (shown >= DENIALS_IN_LINE) {
			left++;
			continue;
		}
		buf_puts(out, shown++ ? ", " : "denied: ");
		text_escape(out, d->what ? d->what : "?");
		if (d->option) {
			buf_puts(out, " (");
			text_escape(out, d->option);
			buf_puts(out, ")");
		}
	}
	if (left)
		buf_printf(out, ", %zu more", left);
	if (shown)
		buf_printf(out, "; ward explain %s", r->run_id);
}

void result_denials_text(const struct result *r, struct buf *out)
{
	auto_buf brief = { 0 };

	if (r->exit_code != 0) {
		text_denials(r, "ward: ", out);
		return;
	}
	text_denials_brief(r, &brief);
	if (brief.len)
		buf_printf(out, "ward: %s\n", buf_text(&brief));
}

void result_notes_text(const struct result *r, struct buf *out)
{
	for (size_t i = 0; i < r->loud.len; i++) {
		buf_puts(out, "ward: note: ");
		text_escape(out, r->loud.items[i]);
		buf_puts(out, "\n");
	}
}

static void text_changes(const struct result *r, struct buf *out)
{
	const struct result_changes *c = &r->changes;
	size_t all = c->added + c->changed + c->deleted;

	if (!c->reviewed)
		return;
	if (c->apply)
		buf_printf(out, "  review: %zu applied, %zu left", c->applied, c->left);
	else if (c->counted)
		buf_printf(out, "  review: %zu file%s changed", all, all == 1 ? "" : "s");
	else
		buf_puts(out, "  review");
	if (c->apply ? c->left : all || !c->counted)
		buf_printf(out, "; ward diff %s, ward apply %s, ward discard %s", r->run_id,
			   r->run_id, r->run_id);
	buf_puts(out, "\n");
}

/* On success it is all there is: what was refused is in it. */
static void text_head(const struct result *r, bool verbose, bool colour, struct buf *out)
{
	char duration[48], memory[48], cpu[48];
	bool fine = r->exit_code == 0;

	units_format_ms(r->duration_ms, duration, sizeof(duration));
	units_format_size(r->usage.memory_peak_bytes, memory, sizeof(memory));
	units_format_ms(r->usage.cpu_ms, cpu, sizeof(cpu));
	buf_puts(out, !colour ? "ward: "
		      : fine  ? "\033[32mward:\033[0m "
			      : "\033[33mward:\033[0m ");
	buf_printf(out, "exit %d", r->exit_code);
	if (r->exit_signal) {
		const char *name = sigabbrev_np(r->exit_signal);

		buf_printf(out, " (signal %s%s)", name ? "SIG" : "?", name ? name : "");
	}
	buf_printf(out, ", %s", duration);
	if (r->usage.memory_peak_bytes)
		buf_printf(out, ", peak memory %s", memory);
	buf_printf(out, ", cpu %s", cpu);
	text_layers_brief(r, out);
	if (!verbose && r->exit_code == 0 && r->denial_count) {
		auto_buf brief = { 0 };

		text_denials_brief(r, &brief);
		buf_printf(out, "%s%s", brief.len ? "; " : "", buf_text(&brief));
	}
	buf_puts(out, "\n");
}

#define QUARANTINE_NAMED 4 /* in the one line */
#define NEWS_MAX 8         /* lines of each kind in the summary; the report has all of them */

static void text_news(const struct strv *list, const char *what, struct buf *out)
{
	for (size_t i = 0; i < list->len && i < NEWS_MAX; i++) {
		buf_printf(out, "  %s: ", what);
		text_escape(out, list->items[i]);
		buf_puts(out, "\n");
	}
	if (list->len > NEWS_MAX)
		buf_printf(out, "    and %zu more, see --report\n", list->len - NEWS_MAX);
}

void result_quarantine_text(const struct result *r, struct buf *out)
{
	if (!r->quarantine.len)
		return;
	buf_puts(out, "ward: quarantined: ");
	for (size_t i = 0; i < r->quarantine.len && i < QUARANTINE_NAMED; i++) {
		buf_puts(out, i ? "; " : "");
		text_escape(out, r->quarantine.items[i]);
	}
	if (r->quarantine.len > QUARANTINE_NAMED)
		buf_printf(out, "; and %zu more", r->quarantine.len - QUARANTINE_NAMED);
	buf_printf(out, " (ward quarantine ls %s)\n", r->run_id);
}

void result_text(const struct result *r, const struct plan *p, bool verbose, bool colour,
		 struct buf *out)
{
	if (r->refused)
		return; /* an error, which the caller prints */
	text_head(r, verbose, colour, out);
	if (verbose || r->exit_code != 0)
		text_denials(r, "  ", out);
	for (size_t i = 0; i < r->quarantine.len; i++) {
		buf_puts(out, "  quarantined: ");
		text_escape(out, r->quarantine.items[i]);
		buf_puts(out, "\n");
	}
	if (r->quarantine.len)
		buf_printf(out, "    to restore them: ward quarantine restore %s\n", r->run_id);
	text_news(&r->news.steers, "affects tools that you may run", out);
	text_news(&r->news.leaving, "new link out of the workspace", out);
	text_changes(r, out);
	if (!verbose) {
		text_notes(&r->loud, NULL, out);
		if (r->exit_code && !r->exit_signal && !r->denial_count && !r->loud.len &&
		    !r->error.code)
			buf_puts(out, "  nothing that ward watches was refused; ward run --hints "
				      "also watches for files that are missing inside\n");
		return;
	}
	buf_printf(out, "  run: %s, engine: %s\n", r->run_id, r->engine ? r->engine : "none");
	if (r->inner)
		buf_printf(out, "  runtime: %s\n", r->inner);
	text_notes(&r->notes, NULL, out);
	if (p) {
		text_notes(&p->notes, &r->notes, out);
		text_limits(r, p, out);
	}
	text_layers(r, out);
	if (r->timing && r->timing->on)
		text_steps(r->timing, out);
}
