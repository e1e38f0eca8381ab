/* Fuzzer of git configuration: sections and keys come in lower case and without dots. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int see(void *ctx, const struct gitconfig_entry *entry)
{
	++*(size_t *)ctx;
	for (const char *c = entry->key; *c; c++)
		if (isupper((unsigned char)*c) || *c == '.' || *c == '=')
			abort();
	if (strchr(entry->section, '.'))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	auto_free char *dir = gitconfig_gitdir((const char *)bytes, n);
	size_t count = 0;
	int status = gitconfig_read((const char *)bytes, n, see, &count);

	if ((status != 0 && status != -EINVAL) || (dir && !*dir))
		abort();
	return 0;
}
