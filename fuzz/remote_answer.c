/* Fuzzes what ward-remote reads of a server: JSON as values, and messages of a stream. Every value
 * can be walked, and no text reaches beyond what was read. */
#include <assert.h>
#include <string.h>

#include "remote/stream.h"
#include "remote/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t walk(const struct values *v, const struct value *of)
{
	size_t count = 1;

	for (const struct value *at = value_first(v, of); at; at = value_next(v, at)) {
		const char *key = value_key(v, at);

		assert(key >= v->text.data && key + strlen(key) < v->text.data + v->text.len);
		assert(of->kind == VALUE_LIST || value_get(v, of, key) != NULL);
		assert(strlen(value_own_text(v, at)) < v->text.len);
		(void)value_uint(v, of, key);
		(void)value_bool(v, of, key);
		(void)value_time_ms(v, of, key);
		(void)stream_exit_code(v, at);
		count += walk(v, at);
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct stream_message m;
	struct values v = { 0 };
	size_t at = 0;

	if (n > 4096)
		return 0;
	while (stream_read(data + at, n - at, &m) == 1) {
		assert(m.used >= 5 && m.used <= n - at && m.body + m.n <= data + n);
		at += m.used;
	}
	if (values_read(data, n, &v) == 0)
		assert(walk(&v, v.items) == v.len);
	values_free(&v);
	return 0;
}
