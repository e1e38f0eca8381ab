/*
 * GET /metrics and GET /envs. In: /proc and the file system of the sandbox. Out: JSON. The numbers
 * are those that programs inside see; what ward measured outside is in the control plane's metrics.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "envd/call.h"

static uint64_t memory(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	unsigned long long kib = 0;

	return at && sscanf(at + strlen(name), " %llu", &kib) == 1 ? kib * 1024 : 0;
}

void machine_metrics(struct call *c)
{
	char text[8192] = "";
	auto_file f = fopen("/proc/meminfo", "re");
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct statvfs fs = { 0 };
	uint64_t total, available, cache;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (f)
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	total = memory(text, "MemTotal:");
	available = memory(text, "MemAvailable:");
	cache = memory(text, "\nCached:");
	(void)statvfs(c->person.home, &fs);
	json_begin_object(&j, NULL);
	json_int(&j, "ts", time(NULL));
	json_int(&j, "cpu_count", cpus > 0 ? cpus : 1);
	json_uint(&j, "cpu_used_pct", 0);
	json_uint(&j, "mem_total", total);
	json_uint(&j, "mem_used", total - available);
	json_uint(&j, "mem_cache", cache);
	json_uint(&j, "mem_total_mib", total >> 20);
	json_uint(&j, "mem_used_mib", (total - available) >> 20);
	json_uint(&j, "disk_used", (fs.f_blocks - fs.f_bfree) * fs.f_frsize);
	json_uint(&j, "disk_total", fs.f_blocks * fs.f_frsize);
	json_end_object(&j);
	call_answer(c, 200, &out);
}

void machine_envs(struct call *c)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	auto_strv config = { 0 };

	session_config(&config);
	json_begin_object(&j, NULL);
	for (size_t i = 0; i < config.len; i++) {
		char *value = strchr(config.items[i], '=');

		if (!value)
			continue;
		*value = '\0';
		json_string(&j, config.items[i], value + 1);
	}
	json_end_object(&j);
	call_answer(c, 200, &out);
}
