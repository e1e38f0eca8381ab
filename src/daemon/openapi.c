/*
 * The OpenAPI document of the control plane. In: the tables routes.def, access.def and openapi.def.
 * Out: JSON, OpenAPI 3.1, made when it is asked for. Runs in the front.
 */
#include <string.h>

#include "daemon/control_access.h"

enum body {
	BODY_NO,
#define BODY(id, schema) BODY_OF_##id,
#include "daemon/openapi.def"
	BODIES
};

#define BODY_OF_NONE BODY_NO

static const struct {
	unsigned status;
	const char *query;
	enum body body;
	const char *summary;
} docs[ROUTES] = {
#define DOC(id, status, query, body, summary)                                                      \
	[ROUTE_##id] = { status, query, BODY_OF_##body, summary },
#include "daemon/openapi.def"
};

static const char *const bodies[BODIES] = {
#define BODY(id, schema) [BODY_OF_##id] = schema,
#include "daemon/openapi.def"
};

static void parameter(struct json *j, const char *in, const char *name, size_t n)
{
	auto_free char *text = strndup(name, n);

	json_begin_object(j, NULL);
	json_string(j, "name", text);
	json_string(j, "in", in);
	json_bool(j, "required", strcmp(in, "path") == 0);
	json_begin_object(j, "schema");
	json_string(j, "type", "string");
	json_end_object(j);
	json_end_object(j);
}

static void parameters(struct json *j, enum route_verb verb)
{
	const char *at = docs[verb].query ? docs[verb].query : "";

	json_begin_array(j, "parameters");
	if (strstr(route_path(verb), "{id}"))
		parameter(j, "path", "id", 2);
	while (*at) {
		size_t n = strcspn(at, " ");

		parameter(j, "query", at, n);
		at += n + (at[n] == ' ');
	}
	json_end_array(j);
}

static void body(struct json *j, enum body which)
{
	if (which == BODY_NO)
		return;
	json_begin_object(j, "requestBody");
	json_begin_object(j, "content");
	json_begin_object(j, "application/json");
	buf_puts(j->out, "\"schema\":");
	buf_puts(j->out, bodies[which]);
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
}

static void responses(struct json *j, enum route_verb verb)
{
	char status[16];

	snprintf(status, sizeof(status), "%u", docs[verb].status ? docs[verb].status : 200);
	json_begin_object(j, "responses");
	json_begin_object(j, status);
	json_string(j, "description", "done");
	json_end_object(j);
	json_begin_object(j, "default");
	json_string(j, "description", "it was refused; message says why");
	json_begin_object(j, "content");
	json_begin_object(j, "application/json");
	buf_puts(j->out, "\"schema\":{\"$ref\":\"#/components/schemas/Error\"}");
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
}

static void operation(struct json *j, enum route_verb verb)
{
	const char *method = route_method(verb);
	char name[16];
	size_t i = 0;

	for (; method[i] && i + 1 < sizeof(name); i++)
		name[i] = (char)(method[i] | 0x20);
	name[i] = '\0';
	json_begin_object(j, name);
	json_string(j, "operationId", route_name(verb));
	json_string(j, "summary", docs[verb].summary ? docs[verb].summary : route_name(verb));
	json_string(j, "x-ward-right", access_right_name(route_right(verb)));
	if (route_right(verb) == RIGHT_OPEN) {
		json_begin_array(j, "security");
		json_end_array(j);
	}
	parameters(j, verb);
	body(j, docs[verb].body);
	responses(j, verb);
	json_end_object(j);
}

/* All methods of the path of this row, unless an earlier row has had it. */
static void path(struct json *j, enum route_verb verb)
{
	for (int i = 1; i < (int)verb; i++)
		if (strcmp(route_path((enum route_verb)i), route_path(verb)) == 0)
			return;
	json_begin_object(j, route_path(verb));
	for (int i = (int)verb; i < ROUTES; i++)
		if (strcmp(route_path((enum route_verb)i), route_path(verb)) == 0)
			operation(j, (enum route_verb)i);
	json_end_object(j);
}

void control_openapi(struct conn *c)
{
	auto_buf text = { 0 };
	struct json j = { .out = &text };

	json_begin_object(&j, NULL);
	json_string(&j, "openapi", "3.1.0");
	json_begin_object(&j, "info");
	json_string(&j, "title", "ward serve");
	json_string(&j, "version", "1");
	json_end_object(&j);
	json_begin_object(&j, "paths");
	for (int i = 1; i < ROUTES; i++)
		path(&j, (enum route_verb)i);
	json_end_object(&j);
	buf_puts(&text,
		 ",\"components\":{\"schemas\":{\"Error\":{\"type\":\"object\","
		 "\"required\":[\"code\",\"message\"],\"properties\":{"
		 "\"code\":{\"type\":\"integer\"},\"message\":{\"type\":\"string\"}}}},"
		 "\"securitySchemes\":{\"key\":{\"type\":\"apiKey\",\"in\":\"header\","
		 "\"name\":\"X-API-KEY\"},\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}},"
		 "\"security\":[{\"key\":[]},{\"bearer\":[]}]");
	json_end_object(&j);
	conn_answer(c, 200, "application/json", &text, NULL);
}
