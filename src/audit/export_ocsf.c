/*
 * OCSF: one JSON object. In: an event. Out: the object of its class, with what the class requires.
 * Pure. Each value of the event goes to the paths that tables/export.def has for it
 * ("process.file.path"); the paths are sorted, and so become nested objects in one walk. What has
 * no row is in "unmapped".
 */
#include <inttypes.h>
#include <string.h>

#include "audit/escape.h"
#include "audit/export.h"
#include "event/event.h"

#define SCHEMA "1.3.0"
#define LEAVES 128
#define OTHER 99

static const char profiles[] = "[\"host\",\"security_control\",\"container\"]";

enum as { AS_SAME, AS_TEXT, AS_BASE };

static const struct {
	uint16_t uid;
	uint8_t category;
	const char *name;
} classes[] = {
#define CLASS(uid, category, name) { uid, category, name },
#include "export.def"
};

static const struct {
	uint16_t uid;
	const char *path, *value;
} fixed[] = {
#define FIXED(uid, path, value) { uid, path, value },
#include "export.def"
};

static const struct {
	uint16_t uid;
	uint8_t field, as;
	const char *path;
} rows[] = {
#define OCSF(uid, field, path, as) { uid, FIELD_##field, AS_##as, path },
#include "export.def"
};

struct leaf {
	char path[64];
	const char *text; /* NULL: a number, or the value below */
	size_t len;
	uint64_t number;
	const struct event_value *value;
	enum as as;
};

struct leaves {
	struct leaf items[LEAVES];
	size_t len;
};

static struct leaf *add(struct leaves *l, const char *group, const char *path)
{
	struct leaf *leaf = &l->items[l->len < LEAVES ? l->len++ : LEAVES - 1];

	*leaf = (struct leaf){ 0 };
	snprintf(leaf->path, sizeof(leaf->path), "%s%s", group, path);
	return leaf;
}

static void add_text(struct leaves *l, const char *path, const char *text)
{
	struct leaf *leaf = add(l, "", path);

	leaf->text = text;
	leaf->len = strlen(text);
}

static void add_number(struct leaves *l, const char *path, uint64_t number)
{
	add(l, "", path)->number = number;
}

/* By components: what is in an object stands together. */
static int compare(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return (*a == '.' ? 1 : (unsigned char)*a) - (*b == '.' ? 1 : (unsigned char)*b);
}

/* Few, and the order in which they came counts among equals. */
static void sort(struct leaves *l)
{
	for (size_t i = 1; i < l->len; i++) {
		struct leaf moved = l->items[i];
		size_t k = i;

		for (; k > 0 && compare(l->items[k - 1].path, moved.path) > 0; k--)
			l->items[k] = l->items[k - 1];
		l->items[k] = moved;
	}
}

static void put_list(struct buf *out, const struct event_value *value)
{
	buf_puts(out, "[");
	for (size_t at = 0; at < value->len; at += strlen(value->text + at) + 1) {
		buf_puts(out, at ? "," : "");
		escape_json(out, value->text + at, strlen(value->text + at));
	}
	buf_puts(out, "]");
}

static void put_joined(struct buf *out, const struct event_value *value)
{
	auto_buf joined = { 0 };

	for (size_t at = 0; at < value->len; at += strlen(value->text + at) + 1) {
		buf_puts(&joined, at ? " " : "");
		buf_puts(&joined, value->text + at);
	}
	escape_json(out, buf_text(&joined), joined.len);
}

static void put_value(struct buf *out, const struct event_value *value, enum as as)
{
	enum event_type type = event_field_type((enum event_field)value->field);
	const char *slash = type == EVENT_TEXT && as == AS_BASE && value->len
				    ? memrchr(value->text, '/', value->len)
				    : NULL;

	if (type == EVENT_NUMBER)
		buf_printf(out, as == AS_TEXT ? "\"%" PRIu64 "\"" : "%" PRIu64, value->number);
	else if (type == EVENT_FLAG)
		buf_puts(out, "true");
	else if (type == EVENT_LIST && as == AS_SAME)
		put_list(out, value);
	else if (type == EVENT_LIST)
		put_joined(out, value);
	else if (slash)
		escape_json(out, slash + 1, value->len - (size_t)(slash + 1 - value->text));
	else
		escape_json(out, value->text, value->len);
}

static void put_leaf(struct buf *out, const struct leaf *leaf)
{
	if (leaf->value)
		put_value(out, leaf->value, leaf->as);
	else if (leaf->text && leaf->text == profiles)
		buf_puts(out, profiles);
	else if (leaf->text)
		escape_json(out, leaf->text, leaf->len);
	else
		buf_printf(out, "%" PRIu64, leaf->number);
}

/* The objects of one level: all leaves from *at on that share the first n bytes of their path. */
static void put_level(struct leaves *l, size_t *at, size_t n, struct buf *out)
{
	const char *prefix = l->items[*at].path;
	bool comma = false;

	buf_puts(out, "{");
	while (*at < l->len && strncmp(l->items[*at].path, prefix, n) == 0) {
		const struct leaf *leaf = &l->items[*at];
		const char *name = leaf->path + n;
		size_t len = strcspn(name, ".");

		buf_printf(out, "%s\"%.*s\":", comma ? "," : "", (int)len, name);
		comma = true;
		if (name[len] == '.') {
			put_level(l, at, n + len + 1, out);
			continue;
		}
		put_leaf(out, leaf);
		for ((*at)++; *at < l->len && compare(leaf->path, l->items[*at].path) == 0;)
			(*at)++; /* the first one counts */
	}
	buf_puts(out, "}");
}

/* -- what the event is */

static const char *class_name(unsigned uid, unsigned *ret_category)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (classes[i].uid == uid) {
			*ret_category = classes[i].category;
			return classes[i].name;
		}
	*ret_category = 0;
	return "Base Event";
}

static unsigned http_activity(const struct ward_event *v)
{
	static const char methods[][8] = { "CONNECT", "DELETE", "GET",   "HEAD", "OPTIONS",
					   "POST",    "PUT",    "TRACE", "PATCH" };
	const struct event_value *method = event_get(v, FIELD_METHOD);

	for (unsigned i = 0; method && i < ARRAY_LEN(methods); i++)
		if (method->len == strlen(methods[i]) &&
		    memcmp(method->text, methods[i], method->len) == 0)
			return i + 1;
	return OTHER;
}

static unsigned activity(const struct ward_event *v, unsigned class)
{
	unsigned a = event_ocsf_activity((enum event_kind)v->kind);

	if (class == 4002)
		return http_activity(v);
	return class == 4001 && a == 1 && v->action == ACTION_DENY ? 5 : a; /* Refuse */
}

static void add_decision(struct leaves *l, const struct ward_event *v)
{
	static const struct {
		uint8_t action, disposition;
		char text[12];
	} rows_of[EVENT_ACTIONS] = {
		[ACTION_LOG] = { 0, 17, "Logged" },      [ACTION_ALLOW] = { 1, 1, "Allowed" },
		[ACTION_DENY] = { 2, 2, "Blocked" },     [ACTION_ASK] = { OTHER, OTHER, "Asked" },
		[ACTION_APPROVE] = { 1, 8, "Approved" },
	};

	if (rows_of[v->action].action)
		add_number(l, "action_id", rows_of[v->action].action);
	if (rows_of[v->action].action == OTHER)
		add_text(l, "action", "Asked");
	add_number(l, "disposition_id", rows_of[v->action].disposition);
	add_text(l, "disposition", rows_of[v->action].text);
	add_number(l, "status_id", v->action == ACTION_DENY ? 2 : 1);
}

static void add_fields(struct leaves *l, const struct ward_event *v, unsigned class)
{
	for (size_t i = 0; i < v->count; i++) {
		bool mapped = false;

		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			if (rows[k].field == v->values[i].field &&
			    (!rows[k].uid || rows[k].uid == class || rows[k].uid == class / 1000)) {
				struct leaf *leaf = add(l, "", rows[k].path);

				leaf->value = &v->values[i];
				leaf->as = (enum as)rows[k].as;
				mapped = true;
			}
		if (!mapped)
			add(l, "unmapped.", event_field_name((enum event_field)v->values[i].field))
				->value = &v->values[i];
	}
	for (size_t k = 0; k < ARRAY_LEN(fixed); k++)
		if (!fixed[k].uid || fixed[k].uid == class)
			add_text(l, fixed[k].path, fixed[k].value);
}

/* What classes require and an event may lack. */
static void add_required(struct leaves *l, const struct ward_event *v, unsigned class,
			 const char *kind, const char *uid, const struct export_from *from)
{
	add_text(l, "device.hostname", from->host);
	add_number(l, "device.type_id", 0);
	if (class == 1001) {
		add_text(l, "file.name", "-");
		add_number(l, "file.type_id", 0);
		if (event_get(v, FIELD_TO))
			add_number(l, "file_result.type_id", 0);
	} else if (class == 1007) {
		add_text(l, "process.name", kind);
		add_text(l, "process.uid", uid);
		if (event_get(v, FIELD_EXE))
			add_number(l, "process.file.type_id", 1);
	} else if (class == 2004) {
		add_text(l, "finding_info.uid", uid);
		add_text(l, "finding_info.title", kind);
	} else if (class == 4003) {
		add_text(l, "query.hostname", "-");
	} else if (class == 6003) {
		add_text(l, "api.operation", kind);
	}
	if (class == 4001 || class == 4002 || class == 4003 || class == 6003)
		add_text(l, "src_endpoint.hostname", from->host);
	if (class == 4002)
		add_text(l, "http_request.http_method", "-");
	if (event_get(v, FIELD_EXE))
		add_number(l, "actor.process.file.type_id", 1);
}

void export_ocsf(const struct export_from *from, const struct ward_event *v, struct buf *out)
{
	const unsigned class = event_ocsf_class((enum event_kind)v->kind), act = activity(v, class);
	const char *kind = event_kind_name((enum event_kind)v->kind);
	struct leaves l;
	struct leaf *said;
	auto_buf message = { 0 };
	unsigned category = 0;
	char uid[96];
	size_t at = 0;

	l.len = 0;
	export_uid(v, uid);
	export_message(v, &message);
	add_text(&l, "class_name", class_name(class, &category));
	add_number(&l, "class_uid", class);
	add_number(&l, "category_uid", category);
	add_number(&l, "activity_id", act);
	add_text(&l, "activity_name", kind);
	add_number(&l, "type_uid", class * 100 + act);
	add_number(&l, "severity_id", event_severity(v));
	add_number(&l, "time", v->time_us / 1000);
	said = add(&l, "", "message");
	said->text = buf_text(&message);
	said->len = message.len;
	add_text(&l, "metadata.profiles", profiles);
	add_text(&l, "metadata.version", SCHEMA);
	add_text(&l, "metadata.product.name", "ward");
	add_text(&l, "metadata.product.vendor_name", "ward");
	add_text(&l, "metadata.product.version", WARD_VERSION);
	add_text(&l, "metadata.uid", uid);
	add_number(&l, "metadata.sequence", v->seq);
	add_text(&l, "metadata.event_code", kind);
	add_text(&l, "metadata.log_name", "ward");
	if (v->run)
		add_text(&l, "container.uid", v->run);
	add_decision(&l, v);
	add_fields(&l, v, class);
	add_required(&l, v, class, kind, uid, from);
	sort(&l);
	put_level(&l, &at, 0, out);
}
