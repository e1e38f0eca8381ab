/* Fuzzes what a sandbox says when files are copied out of it. */
#include <assert.h>
#include <string.h>

#include "control/copy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t head = n < sizeof(struct guest_copy) ? n : sizeof(struct guest_copy);
	const char *name = (const char *)data + head;
	auto_free char *text = strndup(name, n - head);
	struct guest_copy h;

	if (copy_check_head(data, head, &h) == 0) {
		assert(h.mode <= 0777 && h.name_len <= GUEST_COPY_NAME_MAX);
		assert(h.type == GUEST_COPY_FILE || h.size <= GUEST_COPY_NAME_MAX);
	}
	if (copy_check_name(name, n - head) == 0 && n > head) {
		assert(name[0] != '/' && !memchr(name, 0, n - head));
		assert(text && strcmp(text, "..") != 0 && !strstr(text, "/../") &&
		       !strstr(text, "//"));
	}
	if (text && copy_link_stays("a/b", text, strlen(text)))
		assert(text[0] != '/' && strncmp(text, "../../", 6) != 0);
	return 0;
}
