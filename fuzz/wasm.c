/* What ward-wasm itself reads: the words that it is started with, and a module's first bytes and
 * sections. */
#include <stdlib.h>
#include <string.h>

#include "wasm/wasm.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = malloc(n + 1), *words[WORDS_MAX + 1] = { NULL };
	struct wasm_job job;
	int count = 0;

	if (!text)
		return 0;
	memcpy(text, bytes, n);
	text[n] = '\0';
	if (wasm_kind(bytes, n) == WASM_MODULE && (n < 8 || memcmp(bytes, "\0asm\1\0\0\0", 8) != 0))
		abort();
	for (char *at = text; at < text + n && count < WORDS_MAX; at += strlen(at) + 1)
		words[count++] = at;
	if (!wasm_words(count, words, &job) && !wasm_add_cwd(&job, "/workspace/dir") &&
	    job.dir_count > WASM_DIRS_MAX)
		abort();
	free(text);
	return 0;
}
