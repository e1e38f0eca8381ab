/*
 * ward doctor: what works here. In: what host/probe.c found by trying, and which runtimes work
 * (doctor_try.c). Out: each layer with its state, the reason and the command that enables it, the
 * isolation levels, and the one that a run would use now; at most 80 columns wide. Exit 1 when a
 * run under the default policy would be refused.
 */
#include "cli/cli.h"
#include "cli/doctor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/engines.h"
#include "host/gpus.h"
#include "host/probe.h"
#include "limit/limits.h"

static const char *state_name(enum probe_state s)
{
	return s == PROBE_PRESENT ? "present" : s == PROBE_UNNEEDED ? "not needed" : "absent";
}

static const char *need_name(enum probe_need n)
{
	return n == PROBE_MUST ? "required" : n == PROBE_USED ? "used when present" : "later";
}

/* An engine is as usable as the runtime that a run would take. */
static size_t look_at_engines(struct engine_state states[ENGINES_MAX],
			      const struct doctor_trial *trials)
{
	size_t count = engines_look(states);

	for (size_t i = 0; i < count; i++) {
		const struct doctor_trial *t = doctor_trial_of(trials, states[i].name);

		if (!states[i].usable || !t || t->state != TRIAL_FAILS)
			continue;
		states[i].usable = false;
		states[i].inner = NULL;
		states[i].about[0] = '\0';
		ward_fail(&states[i].why, EIO, "%s does not work: %.300s", t->path, t->why.why);
		ward_remedy(&states[i].why, "reinstall %s, or choose another in the policy",
			    t->name);
	}
	return count;
}

static const char *trial_name(enum trial_state s)
{
	return s == TRIAL_WORKS ? "works" : s == TRIAL_FAILS ? "fails" : "not installed";
}

#define TEXT_INDENT 34   /* where the third column begins */
#define REMEDY_INDENT 12 /* behind "    remedy: " */

/* A row of three columns: name, state, and text that wraps within its column. */
static void row_text(struct buf *out, const char *name, const char *state, const char *text)
{
	buf_printf(out, "  %-17s %-13s ", name, state);
	text_wrap(out, text, TEXT_INDENT);
	while (out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buf_puts(out, "\n");
}

static void remedy_text(struct buf *out, const char *remedy)
{
	if (!*remedy)
		return;
	buf_puts(out, "    remedy: ");
	text_wrap(out, remedy, REMEDY_INDENT);
	buf_puts(out, "\n");
}

static void runtimes_text(const struct doctor_trial *trials, struct buf *out)
{
	buf_puts(out, "\nruntimes\n");
	for (size_t i = 0; i < DOCTOR_TRIALS; i++) {
		auto_buf text = { 0 };

		buf_puts(&text, trials[i].path);
		if (trials[i].state == TRIAL_FAILS)
			buf_printf(&text, ": %s", trials[i].why.why);
		row_text(out, trials[i].name, trial_name(trials[i].state), buf_text(&text));
	}
}

static void runtimes_json(const struct doctor_trial *trials, struct json *j)
{
	json_begin_array(j, "runtimes");
	for (size_t i = 0; i < DOCTOR_TRIALS; i++) {
		json_begin_object(j, NULL);
		json_string(j, "name", trials[i].name);
		json_string(j, "engine", trials[i].engine);
		json_string(j, "state", trial_name(trials[i].state));
		json_string(j, "path", trials[i].path[0] ? trials[i].path : NULL);
		json_string(j, "why", trials[i].state == TRIAL_FAILS ? trials[i].why.why : NULL);
		json_end_object(j);
	}
	json_end_array(j);
}

static void engines_text(const struct doctor_trial *trials, struct buf *out)
{
	struct engine_state states[ENGINES_MAX];
	size_t count = look_at_engines(states, trials);

	buf_puts(out, "\nengines\n");
	for (size_t i = 0; i < count; i++) {
		const struct engine_state *state = &states[i];

		row_text(out, state->name, state->usable ? "usable" : "not usable",
			 !state->usable    ? state->why.why
			 : state->about[0] ? state->about
			 : state->inner    ? state->inner
					   : "");
		if (!state->usable)
			remedy_text(out, state->why.remedy);
	}
}

static void engines_json(const struct doctor_trial *trials, struct json *j)
{
	struct engine_state states[ENGINES_MAX];
	size_t count = look_at_engines(states, trials);

	json_begin_array(j, "engines");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(j, NULL);
		json_string(j, "name", states[i].name);
		json_bool(j, "usable", states[i].usable);
		json_string(j, "wall", states[i].inner);
		json_string(j, "about",
			    states[i].usable && states[i].about[0] ? states[i].about : NULL);
		json_string(j, "why", states[i].usable ? NULL : states[i].why.why);
		json_string(j, "remedy",
			    states[i].usable || !states[i].why.remedy[0] ? NULL
									 : states[i].why.remedy);
		json_end_object(j);
	}
	json_end_array(j);
}

static void gpus_text(struct buf *out)
{
	struct gpus found;
	struct ward_err e;

	buf_puts(out, "\nGPUs\n");
	if (gpus_find(&found, &e) < 0) {
		buf_printf(out, "  %s\n", e.why);
		return;
	}
	if (!found.len)
		buf_puts(out, "  none found\n");
	for (size_t i = 0; i < found.len; i++) {
		const struct gpu *gpu = &found.items[i];

		buf_printf(out, "  %-17zu ", i);
		text_escape(out, gpu->model[0] ? gpu->model : gpu_vendor_name(gpu->vendor));
		buf_printf(out, ", %s%s%s\n", gpu->node, gpu->pci[0] ? ", " : "", gpu->pci);
	}
	gpus_clear(&found);
}

static void gpus_json(struct json *j)
{
	struct gpus found = { 0 };
	struct ward_err e;

	json_begin_array(j, "gpus");
	if (gpus_find(&found, &e) == 0)
		for (size_t i = 0; i < found.len; i++) {
			json_begin_object(j, NULL);
			json_uint(j, "number", i);
			json_string(j, "vendor", gpu_vendor_name(found.items[i].vendor));
			json_string(j, "model",
				    found.items[i].model[0] ? found.items[i].model : NULL);
			json_string(j, "node", found.items[i].node);
			json_string(j, "pci", found.items[i].pci[0] ? found.items[i].pci : NULL);
			json_end_object(j);
		}
	json_end_array(j);
	gpus_clear(&found);
}

/* The absent layer that matters most and that a command brings; PROBES: none. */
static enum probe_id worst(const struct probe *probes)
{
	enum probe_id found = PROBES;

	for (enum probe_id i = 0; i < PROBES; i++)
		if (probes[i].state == PROBE_ABSENT && probes[i].remedy[0] &&
		    probe_need(i) <= PROBE_USED &&
		    (found == PROBES || probe_need(i) < probe_need(found)))
			found = i;
	return found;
}

static void put_verdict(const struct probe *probes, bool namespaces, bool landlock, struct buf *out)
{
	auto_buf absent = { 0 };

	for (enum probe_id i = 0; i < PROBES; i++)
		if (probes[i].state == PROBE_ABSENT && probe_need(i) <= PROBE_USED)
			buf_printf(&absent, "%s%s", absent.len ? ", " : "", probe_name(i));
	if (namespaces && !absent.len)
		buf_puts(out, "ready: ward enforces everything on this machine");
	else if (namespaces)
		buf_printf(out, "ready, but without: %s", buf_text(&absent));
	else
		buf_printf(out, "%s; missing: %s",
			   landlock ? "not ready: a run is refused unless its policy accepts the "
				      "landlock level"
				    : "not ready: every run is refused",
			   absent.len ? buf_text(&absent) : "namespaces");
}

/* Last, so that nobody has to look for it. */
static void verdict_text(const struct probe *probes, bool namespaces, bool landlock,
			 struct buf *out)
{
	enum probe_id i = worst(probes);
	auto_buf words = { 0 };

	put_verdict(probes, namespaces, landlock, &words);
	buf_puts(out, "\nverdict: ");
	text_wrap(out, buf_text(&words), 9);
	buf_puts(out, "\nnext:    ");
	text_wrap(out,
		  i < PROBES   ? probes[i].remedy
		  : namespaces ? "cd to a project, then: ward run -- COMMAND"
			       : "use a machine, or a container, that allows user namespaces",
		  9);
	buf_puts(out, "\n");
}

static void print_text(const struct probe *probes, const struct doctor_trial *trials,
		       bool namespaces, bool landlock, struct buf *out)
{
	buf_puts(out, "layers\n");
	for (enum probe_id i = 0; i < PROBES; i++) {
		row_text(out, probe_name(i), state_name(probes[i].state), probes[i].why);
		if (probes[i].state != PROBE_ABSENT)
			continue;
		buf_puts(out, "    purpose: ");
		text_wrap(out, probe_help(i), REMEDY_INDENT + 1);
		buf_printf(out, " (%s)\n", need_name(probe_need(i)));
		remedy_text(out, probes[i].remedy);
	}
	runtimes_text(trials, out);
	engines_text(trials, out);
	gpus_text(out);
	buf_puts(out, "\nisolation levels\n");
	row_text(out, "namespaces", namespaces ? "usable" : "not usable", "");
	row_text(out, "landlock", landlock ? "usable" : "not usable",
		 landlock ? "only if the policy accepts it: require: {isolation: landlock, "
			    "limits: none}"
			  : "");
	if (namespaces)
		buf_puts(out, "\nA run uses isolation level namespaces now.\n");
	else if (landlock)
		buf_puts(out, "\nA run uses isolation level landlock now if its policy accepts "
			      "that, and is\nrefused otherwise.\n");
	else
		buf_puts(out, "\nA run is refused now.\n");
	verdict_text(probes, namespaces, landlock, out);
}

static void print_json(const struct probe *probes, const struct doctor_trial *trials,
		       bool namespaces, bool landlock, struct buf *out)
{
	struct json j = { .out = out };
	auto_buf words = { 0 };

	json_begin_object(&j, NULL);
	json_begin_array(&j, "layers");
	for (enum probe_id i = 0; i < PROBES; i++) {
		json_begin_object(&j, NULL);
		json_string(&j, "name", probe_name(i));
		json_string(&j, "state", state_name(probes[i].state));
		json_string(&j, "need", need_name(probe_need(i)));
		json_string(&j, "gives", probe_help(i));
		json_string(&j, "why", probes[i].why);
		json_string(&j, "remedy", probes[i].remedy);
		json_end_object(&j);
	}
	json_end_array(&j);
	runtimes_json(trials, &j);
	engines_json(trials, &j);
	gpus_json(&j);
	json_begin_object(&j, "rungs");
	json_bool(&j, "namespaces", namespaces);
	json_bool(&j, "landlock", landlock);
	json_end_object(&j);
	json_string(&j, "takes", namespaces ? "namespaces" : landlock ? "landlock" : NULL);
	json_bool(&j, "usable", namespaces);
	put_verdict(probes, namespaces, landlock, &words);
	json_string(&j, "verdict", buf_text(&words));
	json_string(&j, "next", worst(probes) < PROBES ? probes[worst(probes)].remedy : NULL);
	json_end_object(&j);
	buf_puts(out, "\n");
}

int verb_doctor(struct options *o)
{
	auto_free struct doctor_trial *trials = calloc(DOCTOR_TRIALS, sizeof(*trials));
	struct probe probes[PROBES];
	auto_buf out = { 0 };
	bool namespaces, landlock;

	if (!trials) {
		struct ward_err e = { 0 };

		ward_fail(&e, ENOMEM, "out of memory");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	probe_host(probes, cgroup_probe());
	doctor_try(trials);
	namespaces = probe_namespaces_level(probes);
	landlock = probe_landlock_level(probes);
	if (o->json)
		print_json(probes, trials, namespaces, landlock, &out);
	else
		print_text(probes, trials, namespaces, landlock, &out);
	return say_out(&out, namespaces ? EXIT_FINE : EXIT_FINDINGS);
}
