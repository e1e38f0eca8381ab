/*
 * Answers of the control plane: sandboxes as E2B's clients read them. In: what the registry knows.
 * Out: JSON.
 */
#include <time.h>

#include "daemon/control_access.h"

#define CLIENT_ID "ward" /* deprecated at E2B, but required */

void show_time(struct json *j, const char *key, int64_t ms)
{
	char text[64], whole[96];
	time_t seconds = (time_t)(ms / 1000);
	struct tm t;

	gmtime_r(&seconds, &t);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &t);
	snprintf(whole, sizeof(whole), "%s.%03dZ", text, (int)(ms % 1000));
	json_string(j, key, whole);
}

static void show_common(const struct front *f, const struct sandbox *s, struct json *j)
{
	json_string(j, "sandboxID", s->id);
	json_string(j, "templateID", s->template);
	json_string(j, "alias", s->template);
	json_string(j, "clientID", CLIENT_ID);
	json_string(j, "envdVersion", f->envd_version);
}

/* Only a credential that may use the sandbox gets what opens it. */
static void show_secret(struct conn *c, const struct sandbox *s, struct json *j)
{
	const struct access_what what = access_of_sandbox(s);
	char token[ENVD_TOKEN_MAX + 1];
	enum access_check before = c->denied;
	bool may = access_may(c, RIGHT_USE, &what);

	c->denied = before;
	if (!may)
		return;
	access_sandbox_token(c, s, false, token);
	json_string(j, "envdAccessToken", token);
	access_sandbox_token(c, s, true, token);
	json_string(j, "trafficAccessToken", s->private_traffic ? token : NULL);
	json_null(j, "domain");
}

void show_sandbox(struct conn *c, const struct sandbox *s, const char *key, struct json *j)
{
	json_begin_object(j, key);
	show_common(c->front, s, j);
	show_secret(c, s, j);
	json_end_object(j);
}

/* What holds beside the template's policy. */
static void show_network(const struct sandbox *s, struct json *j)
{
	json_begin_object(j, "network");
	json_bool(j, "allowPublicTraffic", !s->private_traffic);
	if (s->no_network) {
		json_begin_array(j, "denyOut");
		json_string(j, NULL, "0.0.0.0/0");
		json_end_array(j);
	}
	if (s->mask_host)
		json_string(j, "maskRequestHost", s->mask_host);
	json_end_object(j);
}

void show_detail(struct conn *c, const struct sandbox *s, bool listed, struct json *j)
{
	const struct front *f = c->front;

	json_begin_object(j, NULL);
	show_common(f, s, j);
	if (!listed)
		show_secret(c, s, j);
	show_time(j, "startedAt", s->started_ms);
	show_time(j, "endAt", s->end_ms);
	json_string(j, "state", s->state == SANDBOX_PAUSED ? "paused" : "running");
	json_uint(j, "cpuCount", f->cpus);
	json_uint(j, "memoryMB", s->memory_mib);
	json_uint(j, "diskSizeMB", s->disk_mib);
	if (s->metadata) {
		buf_puts(j->out, ",\"metadata\":");
		buf_puts(j->out, s->metadata);
	}
	if (!listed) {
		if (s->internet < 0)
			json_null(j, "allowInternetAccess");
		else
			json_bool(j, "allowInternetAccess", s->internet);
		show_network(s, j);
		json_begin_object(j, "lifecycle");
		json_string(j, "onTimeout", s->auto_pause ? "pause" : "kill");
		json_bool(j, "autoResume", s->auto_resume);
		json_end_object(j);
	}
	json_end_object(j);
}
