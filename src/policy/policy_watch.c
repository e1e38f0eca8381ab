/*
 * Rules of watch.rules and labels of watch.labels. In: a map of the document. Out: what in it does
 * not go together, with its place; and, of the canonical line that struct policy holds, struct
 * policy_watch and struct policy_label. Pure functions over untrusted bytes, no rights; fuzzed
 * (fuzz/alarm.c). What a rule does at run time: src/alarm.
 */
#include "policy/policy_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "policy/policy_value.h"
#include "policy/units.h"

enum {
	LEVEL_FULL = AUDIT_FULL,
	LEVEL_WRITES = AUDIT_WRITES,
	LEVEL_EXEC = AUDIT_EXEC,
	LEVEL_BASIC = AUDIT_BASIC
};

static const struct {
	char name[20], help[120];
	uint8_t unit, level;
} metrics[] = {
#define METRIC(id, name, unit, level, help) { name, help, METRIC_##unit, LEVEL_##level },
#include "metrics.def"
};

static const char dos[WATCH_DOS][8] = { "log", "ask", "freeze", "kill" };

const char *metric_name(enum metric m)
{
	return metrics[m].name;
}

enum metric_unit metric_unit(enum metric m)
{
	return (enum metric_unit)metrics[m].unit;
}

const char *metric_help(enum metric m)
{
	return metrics[m].help;
}

unsigned metric_level(enum metric m)
{
	return metrics[m].level;
}

const char *watch_do_name(enum watch_do act)
{
	return dos[act];
}

static enum metric find_metric(const char *name)
{
	unsigned m = 0;

	while (m < METRICS && strcmp(metrics[m].name, name) != 0)
		m++;
	return (enum metric)m;
}

bool watch_has_shape(const char *kind, const char *text, const char **ret_expected,
		     const char **ret_hint)
{
	static const char *const kinds[] = { "host:", "path:", "program:", "credential:" };

	if (strcmp(kind, "watch_count") == 0) {
		*ret_expected = "something that can be counted";
		*ret_hint = "one of "
#define METRIC(id, name, unit, level, help) name " "
#include "metrics.def"
			;
		return find_metric(text) != METRICS;
	}
	*ret_expected = "KIND:PATTERN";
	*ret_hint = "host:, path:, program: or credential:, and a pattern";
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strncmp(text, kinds[i], strlen(kinds[i])) == 0)
			return text[strlen(kinds[i])] != '\0' && strlen(text) < 1024;
	return false;
}

bool watch_is_canary_file(const char *text)
{
	const char *rest = strncmp(text, "~/", 2) == 0 ? text + 1 : text;
	auto_free char *clean = path_clean(rest);

	return *rest == '/' && clean && strcmp(clean, rest) == 0 && rest[1] &&
	       strlen(rest) < WATCH_CANARY_PATH && !strpbrk(rest, "\r\n");
}

bool watch_is_canary_remote(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-",
			  scheme[] = "=https://";
	size_t name = strspn(text, letters), host;

	if (!name || *text == '.' || *text == '-' || strlen(text) >= WATCH_CANARY_PATH ||
	    strncmp(text + name, scheme, sizeof(scheme) - 1) != 0)
		return false;
	text += name + sizeof(scheme) - 1;
	host = strspn(text, letters);
	if (!host || *text == '.' || *text == '-' || text[host - 1] == '.' || text[host] != '/')
		return false;
	return strspn(text + host, letters) != strlen(text + host) &&
	       !strpbrk(text, "@ \t\r\n\"'\\?#");
}

/* -- what goes together */

void item_check_watch(struct reader *r, const char *path, const struct node *map)
{
	const char *count = value_text_of(map, "count");
	enum metric m = count ? find_metric(count) : METRICS;

	if (m == METRICS)
		return; /* said elsewhere */
	if (value_text_of(map, "above_cost") && metric_unit(m) != METRIC_COST)
		value_refuse(r, path, map, "above_cost", "only spend has a cost", "write above");
	if (value_text_of(map, "above") && metric_unit(m) == METRIC_COST)
		value_refuse(r, path, map, "above", "spend is an amount of money",
			     "write above_cost");
	if (value_text_of(map, "within_seconds") && m == METRIC_IDLE_CPU)
		value_refuse(r, path, map, "within_seconds",
			     "idle_cpu counts from the last output on", "remove it");
}

void item_check_label(struct reader *r, const char *path, const struct node *map)
{
	static const char *const keys[] = { "paths", "hosts", "credentials" };
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct node *n = node_get(map, keys[i]);

		any |= n && (n->kind != NODE_LIST || n->first);
	}
	if (!any)
		reader_error(r, (struct place){ map->line, map->column },
			     "name at least one path, host or credential",
			     "%s: a label that nothing uses", path);
}

/* -- from a line to a rule */

static bool copy_name(const struct node *map, const char *key, char ret[WATCH_NAME_TEXT])
{
	const char *text = value_text_of(map, key), *expected, *hint;

	if (!text)
		return false;
	if (!value_has_shape("label", text, &expected, &hint) || strlen(text) >= WATCH_NAME_TEXT)
		return false;
	memcpy(ret, text, strlen(text) + 1);
	return true;
}

/* False: there is something else than a list of texts. */
static bool copy_list(const struct node *map, const char *key, struct strv *ret)
{
	const struct node *n = node_get(map, key);

	if (!n)
		return true;
	if (n->kind != NODE_LIST)
		return false;
	for (const struct node *c = n->first; c; c = c->next) {
		if (!c->text || c->kind == NODE_LIST || c->kind == NODE_MAP)
			return false;
		strv_add(ret, c->text);
	}
	return !ret->failed;
}

static bool has_except_shapes(const struct strv *list)
{
	const char *expected, *hint;

	for (size_t i = 0; i < list->len; i++)
		if (!watch_has_shape("watch_except", list->items[i], &expected, &hint))
			return false;
	return true;
}

static bool read_numbers(const struct node *map, struct policy_watch *w)
{
	const char *above = value_text_of(map, "above"), *cost = value_text_of(map, "above_cost"),
		   *within = value_text_of(map, "within_seconds");
	bool money = metric_unit(w->count) == METRIC_COST;

	if ((above && money) || (cost && !money) || (within && w->count == METRIC_IDLE_CPU))
		return false;
	return (!above || units_parse_size(above, &w->above) == 0) &&
	       (!cost || units_parse_money(cost, &w->above) == 0) &&
	       (!within || (units_parse_seconds(within, &w->within_ms) == 0 &&
			    w->within_ms >= 1000 && w->within_ms <= 86400000));
}

static bool take_rule(const struct node *map, struct policy_watch *w)
{
	const char *count = value_text_of(map, "count"), *act = value_text_of(map, "do");
	unsigned k = 0;

	w->count = count ? find_metric(count) : METRICS;
	while (act && k < WATCH_DOS && strcmp(dos[k], act) != 0)
		k++;
	w->act = (enum watch_do)k;
	return w->count != METRICS && k < WATCH_DOS && copy_name(map, "name", w->name) &&
	       (!node_get(map, "after") || copy_name(map, "after", w->after)) &&
	       copy_list(map, "except", &w->except) && has_except_shapes(&w->except) &&
	       read_numbers(map, w);
}

int policy_watch_read(const char *line, struct policy_watch *ret, struct ward_err *e)
{
	struct reader reader = { .name = "watch", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));

	*ret = (struct policy_watch){ 0 };
	if (map && map->kind == NODE_MAP && take_rule(map, ret))
		return 0;
	policy_watch_clear(ret);
	return ward_fail(e, EINVAL, "watch.rules: %.200s is not a rule", line);
}

void policy_watch_clear(struct policy_watch *w)
{
	strv_free(&w->except);
	*w = (struct policy_watch){ 0 };
}

int policy_label_read(const char *line, struct policy_label *ret, struct ward_err *e)
{
	struct reader reader = { .name = "label", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));

	*ret = (struct policy_label){ 0 };
	if (map && map->kind == NODE_MAP && copy_name(map, "name", ret->name) &&
	    copy_list(map, "paths", &ret->paths) && copy_list(map, "hosts", &ret->hosts) &&
	    copy_list(map, "credentials", &ret->credentials))
		return 0;
	policy_label_clear(ret);
	return ward_fail(e, EINVAL, "watch.labels: %.200s is not a label", line);
}

void policy_label_clear(struct policy_label *l)
{
	strv_free(&l->paths);
	strv_free(&l->hosts);
	strv_free(&l->credentials);
	*l = (struct policy_label){ 0 };
}

/* -- all of a policy */

static int add_name(struct strv *names, const char *what, const char *name, struct ward_err *e)
{
	if (strv_has(names, name))
		return ward_fail(e, EINVAL, "%s: two are called %s", what, name);
	strv_add(names, name);
	return names->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int check_rule(const struct policy *p, const struct policy_watch *w,
		      const struct strv *labels, struct ward_err *e)
{
	if (w->after[0] && !strv_has(labels, w->after)) {
		ward_fail(e, EINVAL, "watch.rules: %s: watch.labels has no label %s", w->name,
			  w->after);
		return ward_remedy(e, "watch.labels: [{name: %s, paths: [...]}]", w->after);
	}
	if (w->act == WATCH_ASK && p->appr_mode != APPROVALS_ASK) {
		ward_fail(e, EINVAL, "watch.rules: %s: do: ask needs approvals.mode: ask", w->name);
		return ward_remedy(e, "approvals.mode: ask, or do: freeze");
	}
	return 0;
}

int policy_watch_check(const struct policy *p, struct ward_err *e)
{
	auto_strv names = { 0 }, labels = { 0 };
	int r = 0;

	if (p->watch_rules.len > WATCH_RULES_MAX || p->watch_labels.len > WATCH_LABELS_MAX)
		return ward_fail(e, E2BIG, "watch: at most %d rules and %d labels", WATCH_RULES_MAX,
				 WATCH_LABELS_MAX);
	for (size_t i = 0; i < p->watch_labels.len && r == 0; i++) {
		struct policy_label l;

		r = policy_label_read(p->watch_labels.items[i], &l, e);
		if (r == 0)
			r = add_name(&labels, "watch.labels", l.name, e);
		policy_label_clear(&l);
	}
	for (size_t i = 0; i < p->watch_rules.len && r == 0; i++) {
		struct policy_watch w;

		r = policy_watch_read(p->watch_rules.items[i], &w, e);
		if (r == 0)
			r = add_name(&names, "watch.rules", w.name, e);
		if (r == 0)
			r = check_rule(p, &w, &labels, e);
		policy_watch_clear(&w);
	}
	return r;
}

/* Whether the label of the rule has paths: their reading is an event of the highest level. */
static bool follows_paths(const struct policy *p, const char *name)
{
	bool follows = false;

	for (size_t i = 0; name[0] && i < p->watch_labels.len && !follows; i++) {
		struct policy_label l;
		struct ward_err ignored = { 0 };

		follows = policy_label_read(p->watch_labels.items[i], &l, &ignored) == 0 &&
			  strcmp(l.name, name) == 0 && l.paths.len;
		policy_label_clear(&l);
	}
	return follows;
}

unsigned policy_watch_needs(const struct policy *p, const struct policy_watch *w)
{
	return follows_paths(p, w->after) ? AUDIT_FULL : metric_level(w->count);
}

unsigned policy_watch_level(const struct policy *p, char *ret_rule)
{
	unsigned lowest = AUDIT_BASIC;

	ret_rule[0] = '\0';
	for (size_t i = 0; i < p->watch_rules.len; i++) {
		struct ward_err ignored = { 0 };
		struct policy_watch w;
		unsigned level;

		if (policy_watch_read(p->watch_rules.items[i], &w, &ignored) < 0)
			continue;
		level = policy_watch_needs(p, &w);
		if (level < lowest) {
			lowest = level;
			memcpy(ret_rule, w.name, WATCH_NAME_TEXT);
		}
		policy_watch_clear(&w);
	}
	return lowest;
}

bool policy_watch_counts(const struct policy *p, enum metric m)
{
	bool counts = false;

	for (size_t i = 0; i < p->watch_rules.len && !counts; i++) {
		struct ward_err ignored = { 0 };
		struct policy_watch w;

		counts = policy_watch_read(p->watch_rules.items[i], &w, &ignored) == 0 &&
			 w.count == m;
		policy_watch_clear(&w);
	}
	return counts;
}
