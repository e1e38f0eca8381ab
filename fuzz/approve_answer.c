/* Answers of programs: whatever is read fits its fields, and is read again from what it says. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "approve/answer.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answer_said said, again;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (size > 4096 || answer_read(data, size, &said, &e) < 0)
		return 0;
	assert(memchr(said.id, 0, sizeof(said.id)) && memchr(said.by, 0, sizeof(said.by)));
	assert(answer_word(said.answer) && answer_of(answer_word(said.answer)) == said.answer);
	assert((said.answer == QUESTION_TIME) == (said.seconds > 0));
	json_begin_object(&j, NULL);
	json_string(&j, "id", said.id);
	json_string(&j, "answer", answer_word(said.answer));
	if (said.seconds)
		json_uint(&j, "seconds", said.seconds);
	json_string(&j, "by", said.by);
	json_string(&j, "nonce", said.nonce);
	json_end_object(&j);
	if (out.failed)
		return 0;
	assert(answer_read((const uint8_t *)out.data, out.len, &again, &e) == 0);
	assert(strcmp(again.id, said.id) == 0 && again.answer == said.answer &&
	       again.seconds == said.seconds && strcmp(again.by, said.by) == 0);
	return 0;
}
