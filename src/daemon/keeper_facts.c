/*
 * What the front learns of a template: MiB of memory and of disk that its policy grants, whether it
 * grants a network, its engine, and whether it asks a person. In: ward's own plan for a sandbox of
 * that template. Out: a line. The front itself reads no policy; a plan takes milliseconds, so it is
 * made once for each version of a policy file. Run by the keeper.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "daemon/keeper_facts.h"
#include "rules/json_in.h"

#define FACTS_MAX 64 /* templates; what is beyond is asked for each time */

struct facts {
	char policy[PATH_MAX];
	struct timespec changed;
	char line[96];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct facts *known[FACTS_MAX];

/* Goes to the member of that path: false: there is none. The reader stands before its value. */
static bool go_to(struct json_in *j, const char *const *path)
{
	struct json_level l;
	const char *key;

	for (; *path; path++) {
		bool found = false;

		if (json_in_peek(j) != '{' || !json_in_open(j, '{', &l))
			return false;
		while (!found && json_in_next(j, &l, &key)) {
			found = strcmp(key, *path) == 0;
			if (!found)
				json_in_skip(j);
		}
		if (!found)
			return false;
	}
	return true;
}

/* The value as it is written, without quotes; "" if there is none. */
static void value_of(const char *json, const char *const *path, char *ret, size_t n)
{
	auto_buf text = { 0 };
	struct json_in j;

	json_in_init(&j, (const uint8_t *)json, strlen(json));
	if (go_to(&j, path)) {
		if (json_in_peek(&j) == '"') {
			json_in_string(&j, &text);
		} else {
			const uint8_t *at = j.at;

			json_in_skip(&j);
			buf_add(&text, at, (size_t)(j.at - at));
		}
	}
	json_in_free(&j);
	snprintf(ret, n, "%s", buf_text(&text));
}

static void make_line(const char *json, char *ret, size_t n)
{
	char memory[32], disk[32], mode[32], engine[16], asks[16];

	value_of(json, (const char *const[]){ "limits", "memory", "value", NULL }, memory,
		 sizeof(memory));
	value_of(json, (const char *const[]){ "limits", "disk", "value", NULL }, disk,
		 sizeof(disk));
	value_of(json, (const char *const[]){ "policy", "network.mode", "value", NULL }, mode,
		 sizeof(mode));
	value_of(json, (const char *const[]){ "engine", NULL }, engine, sizeof(engine));
	value_of(json, (const char *const[]){ "policy", "approvals.mode", "value", NULL }, asks,
		 sizeof(asks));
	/* a mode that is not understood counts as a network */
	snprintf(ret, n, "%llu %llu %d %s %d\n", strtoull(memory, NULL, 10) >> 20,
		 strtoull(disk, NULL, 10) >> 20, strcmp(mode, "none") != 0,
		 *engine ? engine : "unknown", strcmp(asks, "ask") == 0);
}

static bool recall(const char *policy, const struct stat *st, char *ret, size_t n)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < FACTS_MAX && known[i] && !found; i++)
		if (strcmp(known[i]->policy, policy) == 0 &&
		    memcmp(&known[i]->changed, &st->st_mtim, sizeof(st->st_mtim)) == 0) {
			snprintf(ret, n, "%s", known[i]->line);
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

static void remember(const char *policy, const struct stat *st, const char *line)
{
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < FACTS_MAX && known[i] && strcmp(known[i]->policy, policy) != 0)
		i++;
	if (i < FACTS_MAX && !known[i])
		known[i] = calloc(1, sizeof(*known[i]));
	if (i < FACTS_MAX && known[i]) {
		snprintf(known[i]->policy, sizeof(known[i]->policy), "%s", policy);
		known[i]->changed = st->st_mtim;
		snprintf(known[i]->line, sizeof(known[i]->line), "%s", line);
	}
	pthread_mutex_unlock(&lock);
}

int keeper_facts(const struct ward_spec *s, const char *policy, struct buf *out,
		 struct ward_error *e)
{
	char line[96], *json = NULL;
	struct stat st;
	int r;

	if (stat(policy, &st) < 0)
		memset(&st, 0, sizeof(st));
	if (!recall(policy, &st, line, sizeof(line))) {
		r = ward_plan(s, &json, e);
		if (r < 0)
			return r;
		make_line(json, line, sizeof(line));
		ward_free(json);
		remember(policy, &st, line);
	}
	buf_puts(out, line);
	return 0;
}

/* The facts that are known are of it, too: a change of what the policy extends is seen here
 * alone. */
int keeper_version(const struct ward_spec *s, const char *policy, struct buf *out,
		   struct ward_error *e)
{
	static const char *const members[] = { "policy", "image", "image_digest", "limits" };
	char *json = NULL, digest[SHA256_HEX], line[96];
	auto_buf all = { 0 };
	struct stat st;
	int r = stat(policy, &st) < 0 ? -errno : ward_plan(s, &json, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct json_in j;

		json_in_init(&j, (const uint8_t *)json, strlen(json));
		if (go_to(&j, (const char *const[]){ members[i], NULL })) {
			const uint8_t *at = j.at;

			json_in_skip(&j);
			buf_add(&all, at, (size_t)(j.at - at));
		}
		json_in_free(&j);
	}
	make_line(json, line, sizeof(line));
	remember(policy, &st, line);
	ward_free(json);
	sha256_hex(buf_text(&all), all.len, digest);
	buf_puts(out, digest);
	return 0;
}
