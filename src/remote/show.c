/*
 * What sandboxes use, what happened to them, and their end: stats, logs, wait. In: their ids. Out:
 * the tables and lines that the same verbs of ward print.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/units.h"
#include "remote/http.h"

#define LOOK_MS 500
#define LOG_LINES 1000

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* -- stats */

static void put_usage(const char *id, const struct values *v, const struct value *u,
		      struct buf *out)
{
	char memory[32], disk[32];

	units_format_size(value_uint(v, u, "memUsed"), memory, sizeof(memory));
	units_format_size(value_uint(v, u, "diskUsed"), disk, sizeof(disk));
	buf_printf(out, "%-23s %-16s %-10llu %-11s %-11s %-6s %s\n", id, "-",
		   (unsigned long long)value_uint(v, u, "cpuUsedPct"), memory, "-", "-", disk);
}

static void put_json_usage(const char *id, const struct values *v, const struct value *u,
			   struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "id", id);
	json_null(j, "name");
	json_uint(j, "cpu_percent", value_uint(v, u, "cpuUsedPct"));
	json_uint(j, "memory_bytes", value_uint(v, u, "memUsed"));
	json_uint(j, "memory_most_bytes", value_uint(v, u, "memTotal"));
	json_uint(j, "disk_bytes", value_uint(v, u, "diskUsed"));
	json_uint(j, "disk_most_bytes", value_uint(v, u, "diskTotal"));
	json_end_object(j);
}

int remote_stats(struct remote *r)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	auto_strv ids = { 0 };
	int result;

	r->all = r->word_count == 0;
	result = remote_choose(r, &ids, &e);
	if (r->json)
		json_begin_list(&j, "sandboxes");
	else
		buf_printf(&out, "%-23s %-16s %-10s %-11s %-11s %-6s %s\n", "ID", "NAME", "CPU %",
			   "MEMORY", "PEAK", "PIDS", "DISK");
	for (size_t i = 0; result == 0 && i < ids.len; i++) {
		struct values v = { 0 };
		char path[64];

		snprintf(path, sizeof(path), "/sandboxes/%s/metrics", ids.items[i]);
		result = http_values(r->http, "GET", path, NULL, NULL, &v, &e);
		if (result == 0 && r->json)
			put_json_usage(ids.items[i], &v, value_first(&v, v.items), &j);
		else if (result == 0)
			put_usage(ids.items[i], &v, value_first(&v, v.items), &out);
		if (result == -ENOENT && r->all)
			result = 0; /* it has ended since the list was made */
		values_free(&v);
	}
	if (result < 0)
		return remote_fail(r, &e);
	if (r->json)
		json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}

/* -- logs */

static void put_line(const struct values *v, const struct value *row, struct buf *out)
{
	auto_buf text = { 0 }, time = { 0 }, level = { 0 };

	text_escape(&time, value_text(v, row, "timestamp"));
	text_escape(&level, value_text(v, row, "level"));
	text_escape(&text, value_text(v, row, "message"));
	buf_printf(out, "%s %-5s %s\n", buf_text(&time), buf_text(&level), buf_text(&text));
}

/* Lines of the log from *ahead on (milliseconds), which moves behind them. */
static int put_log(struct remote *r, const char *id, uint64_t *ahead, uint64_t tail,
		   struct ward_err *e)
{
	auto_buf out = { 0 }, path = { 0 };
	struct values v = { 0 };
	const struct value *logs;
	uint64_t count = 0;
	int result;

	buf_printf(&path, "/v2/sandboxes/%s/logs?limit=%d&direction=forward&cursor=%llu", id,
		   LOG_LINES, (unsigned long long)*ahead);
	result = http_values(r->http, "GET", buf_text(&path), NULL, NULL, &v, e);
	if (result < 0)
		return result;
	logs = value_get(&v, v.items, "logs");
	for (const struct value *at = value_first(&v, logs); at; at = value_next(&v, at))
		count++;
	for (const struct value *at = value_first(&v, logs); at; at = value_next(&v, at)) {
		uint64_t ms = value_time_ms(&v, at, "timestamp");

		if (count-- <= tail)
			put_line(&v, at, &out);
		*ahead = ms >= *ahead ? ms + 1 : *ahead;
	}
	values_free(&v);
	return say_out(&out, 0) == 0 ? 0 : -EIO;
}

int remote_logs(struct remote *r)
{
	char id[REMOTE_ID + 1];
	struct ward_err e = { 0 };
	uint64_t tail = UINT64_MAX, ahead = 0;
	int result;

	if (r->tail && units_parse_uint(r->tail, &tail) < 0) {
		ward_fail(&e, EINVAL, "--tail %.80s: expected a number of lines", r->tail);
		ward_remedy(&e, "for instance --tail 20");
		return say_error(&e, r->json, EXIT_USAGE);
	}
	result = remote_find(r, r->words[0], id, &e);
	if (result == 0)
		result = put_log(r, id, &ahead, tail, &e);
	while (result == 0 && r->follow) {
		pause_ms(LOOK_MS);
		result = put_log(r, id, &ahead, UINT64_MAX, &e);
		if (result == -ENOENT)
			return EXIT_FINE; /* it has ended */
	}
	return result < 0 && e.code ? remote_fail(r, &e) : result < 0 ? EXIT_REFUSED : EXIT_FINE;
}

/* -- wait */

static int wait_one(struct remote *r, const char *id, struct ward_err *e)
{
	char path[64];
	int result;

	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	while ((result = http_call(r->http, "GET", path, NULL, NULL, NULL, e)) == 0)
		pause_ms(LOOK_MS);
	return result == -ENOENT ? 0 : result;
}

/* A sandbox of a server has no command of its own, so that its end has no other status than 0. */
int remote_wait(struct remote *r)
{
	struct ward_err e = { 0 };
	auto_strv ids = { 0 };
	int result = 0;

	/* one that has ended has left no trace: no error as with ward, which keeps results */
	result = remote_choose(r, &ids, &e);
	for (size_t i = 0; result == 0 && i < ids.len; i++) {
		auto_buf out = { 0 };
		struct json j = { .out = &out };

		result = wait_one(r, ids.items[i], &e);
		if (result == 0 && r->json) {
			json_begin_object(&j, NULL);
			json_string(&j, "id", ids.items[i]);
			json_string(&j, "state", "ended");
			json_end_object(&j);
			buf_puts(&out, "\n");
		} else {
			buf_puts(&out, "0\n");
		}
		if (result == 0 && say_out(&out, 0) != 0)
			return EXIT_REFUSED;
	}
	return result < 0 ? remote_fail(r, &e) : EXIT_FINE;
}
