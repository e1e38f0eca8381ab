/* Fuzzer of watch rules. Lines: those that begin with R are rules and those with L labels, as
 * struct policy holds them, all others events of a journal. What the reader takes has a sound form;
 * rules never fire at or below their threshold, and what they fire with is ended text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/alarm.h"
#include "alarm/canary.h"
#include "alarm/entropy.h"
#include "event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void take_line(struct policy *p, const char *line)
{
	struct ward_err e = { 0 };
	struct policy_watch w;
	struct policy_label l;

	if (line[0] == 'R' && policy_watch_read(line + 1, &w, &e) == 0) {
		if (!w.name[0] || w.count >= METRICS || w.act >= WATCH_DOS ||
		    !memchr(w.after, 0, sizeof(w.after)))
			abort();
		for (size_t i = 0; i < w.except.len; i++)
			if (!strchr(w.except.items[i], ':'))
				abort();
		strv_add(&p->watch_rules, line + 1);
		policy_watch_clear(&w);
	} else if (line[0] == 'L' && policy_label_read(line + 1, &l, &e) == 0) {
		strv_add(&p->watch_labels, line + 1);
		policy_label_clear(&l);
	}
}

static void check_fires(struct alarm *a)
{
	struct alarm_fire f;

	while (alarm_take(a, &f)) {
		if (f.value <= f.rule->above || f.cause_count > ALARM_CAUSES ||
		    !memchr(f.why, 0, sizeof(f.why)) || f.rule_number >= alarm_rule_count(a))
			abort();
		for (unsigned i = 0; i < f.cause_count; i++)
			if (!memchr(f.causes[i], 0, sizeof(f.causes[i])))
				abort();
		if (f.seq % 7 == 1)
			alarm_silence(a, f.rule_number, f.seq);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static char scratch[EVENT_LINE_MAX];
	struct policy p = { 0 };
	struct canary_finder *finder = NULL;
	struct alarm *a = NULL;
	struct ward_err e = { 0 };
	struct ward_event v;
	auto_buf chain = { 0 };
	char *text = strndup((const char *)bytes, n), *rest = text, *line;

	if (!text)
		return 0;
	if (entropy_of(bytes, n) > 800 ||
	    canary_finder_new("abcdefghij234567klmn", 1, &finder, &e) < 0)
		abort();
	while ((line = strsep(&rest, "\n"))) {
		if (*line == 'R' || *line == 'L') {
			take_line(&p, line);
			continue;
		}
		if (!a && alarm_create(&p, "/work", &a, &e) < 0)
			break;
		if (!a || !event_decode(line, strlen(line), scratch, &v, NULL))
			continue;
		if (canary_in_event(finder, &v) > 0)
			abort(); /* there is one */
		(void)canary_is_host(&v, "*.evil.test");
		alarm_see(a, &v, v.time_us / 1000);
		check_fires(a);
		alarm_chain(a, v.seq, &chain);
	}
	canary_finder_free(finder);
	alarm_destroy(a);
	strv_free(&p.watch_rules);
	strv_free(&p.watch_labels);
	free(text);
	return 0;
}
