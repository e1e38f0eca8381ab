/* Fuzzes bodies and paths of requests to the code interpreter: variables come out as JSON that is
 * read again. */
#include <assert.h>
#include <string.h>

#include "envd/interpreter_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_env(const struct buf *env)
{
	struct json_level l;
	struct json_in j;
	const char *key;

	json_in_init(&j, (const uint8_t *)buf_text(env), env->len);
	assert(json_in_open(&j, '{', &l));
	while (json_in_next(&j, &l, &key)) {
		assert(*key && !strchr(key, '='));
		json_in_string(&j, NULL);
	}
	assert(json_in_end(&j));
	json_in_free(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct new_context c;
	struct execution e;
	char id[64];
	bool restart;

	if (execution_read(data, n, &e) && e.env.len)
		check_env(&e.env);
	execution_free(&e);
	if (new_context_read(data, n, &c))
		assert(!c.language.failed && !c.cwd.failed);
	new_context_free(&c);
	if (context_path((const char *)data, n, id, &restart))
		assert(*id && strlen(id) < sizeof(id) && !strchr(id, '/') && n > strlen(id));
	return 0;
}
