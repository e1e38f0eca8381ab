/* Fuzzes what is read of /proc, partly in words that a sandbox chose: names of processes, mounts,
 * cgroups. */
#include <assert.h>
#include <string.h>

#include "limit/cgroup_kind.h"
#include "limit/watch_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_free char *text = malloc(n + 1);
	struct proc_info info = { .pid = -1 };
	struct cgroup_map map;
	const char *second;
	uint64_t count;

	if (!text)
		return 0;
	if (n)
		memcpy(text, data, n);
	text[n] = '\0';
	if (!proc_parse_stat(text, &info))
		assert(info.pid == -1);
	(void)proc_parse_key(text, "RssAnon");
	(void)sock_parse_full(text, &count);
	/* two texts: the second begins behind the first NUL */
	second = strlen(text) < n ? text + strlen(text) + 1 : "";
	if (cgroup_map_parse(&map, text, second) == 0) {
		for (unsigned i = 0; i < CG_PLACES; i++)
			assert(!map.dir[i] == !map.mount[i]);
		cgroup_map_clear(&map);
	}
	return 0;
}
