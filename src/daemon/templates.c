/*
 * What the front knows of templates. In: the keeper's list, asked for at the start and every few
 * seconds: it reads the policies, the front reads none. Out: names, limits and engines, for
 * decisions and for clients. A template that is not in the list yet has no known engine.
 */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "daemon/control_access.h"
#include "daemon/snapshot.h"

#define EVERY_MS 15000
#define TEMPLATES_MOST 1024

static void listed(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct template *all = calloc(TEMPLATES_MOST, sizeof(*all));
	size_t n = 0;
	int asks;

	(void)j;
	(void)fds;
	if (result < 0 || !all) {
		front_log_text("templates_failed", "why", text);
		free(all);
		return;
	}
	while (*text && n < TEMPLATES_MOST) {
		struct template *t = &all[n];
		int network = 1, used = 0;

		if (sscanf(text, "%63s %u %u %d %15s %d%n", t->name, &t->memory_mib, &t->disk_mib,
			   &network, t->engine, &asks, &used) == 6 &&
		    route_is_template(t->name)) {
			t->networked = network != 0;
			t->asks = asks != 0;
			n++;
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	free(f->templates);
	f->templates = all;
	f->template_count = n;
}

void templates_tick(struct front *f)
{
	uint64_t now = io_now_ms();

	if (now >= f->templates_ms && jobs_ask(f, KEEPER_TEMPLATES, NULL, listed))
		f->templates_ms = now + EVERY_MS;
}

const char *templates_engine(const struct front *f, const char *name)
{
	for (size_t i = 0; i < f->template_count; i++)
		if (strcmp(f->templates[i].name, name) == 0)
			return f->templates[i].engine;
	return NULL;
}

/* Those that the credential may be used for. */
void control_templates(struct conn *c)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	json_begin_array(&j, NULL);
	for (size_t i = 0; i < c->front->template_count; i++) {
		const struct template *t = &c->front->templates[i];

		if (!access_sees_template(c, t->name, t->engine))
			continue;
		json_begin_object(&j, NULL);
		json_string(&j, "templateID", t->name);
		json_string(&j, "engine", t->engine);
		json_uint(&j, "memoryMB", t->memory_mib);
		json_uint(&j, "diskSizeMB", t->disk_mib);
		json_bool(&j, "network", t->networked);
		json_bool(&j, "asks", t->asks);
		json_end_object(&j);
	}
	json_end_array(&j);
	conn_answer(c, 200, "application/json", &body, NULL);
}

static const char *find_visible(struct conn *c, const char *name)
{
	for (size_t i = 0; i < c->front->template_count; i++) {
		const struct template *t = &c->front->templates[i];

		if (strcmp(t->name, name) == 0 && access_sees_template(c, t->name, t->engine))
			return t->name;
	}
	return NULL;
}

/* What a create would take under that name. */
void control_template_alias(struct conn *c)
{
	const struct snapshot *n = snapshot_find(c->front, c->owner, c->sandbox);
	bool mine = n && access_sees_snapshot(c, n);
	const char *id = mine ? n->id : find_visible(c, c->sandbox);
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	if (!id) {
		conn_refuse(c, 404, "there is no template \"%s\"", c->sandbox);
		return;
	}
	json_begin_object(&j, NULL);
	json_string(&j, "templateID", id);
	json_bool(&j, "public", !mine);
	json_end_object(&j);
	conn_answer(c, 200, "application/json", &body, NULL);
}
