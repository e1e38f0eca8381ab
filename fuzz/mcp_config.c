/* Fuzzes the editor of clients' configurations. What was added can be removed, and then nothing of
 * what stood there before has changed but spaces; a second entry of the name is refused. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mcp/config.h"
#include "mcp/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef int edit(const struct buf *text, const struct config_entry *entry, struct buf *out,
		 const char **ret_why);

/* All bytes but spaces. */
static void squeeze(const struct buf *text, struct buf *out)
{
	for (size_t i = 0; i < text->len; i++)
		if (!memchr(" \t\r\n", text->data[i], 4))
			buf_add(out, &text->data[i], 1);
}

static void try(const struct buf *text, const struct config_entry *entry, edit *add, edit *remove)
{
	auto_buf with = { 0 }, without = { 0 }, again = { 0 }, a = { 0 }, b = { 0 };
	const char *why = NULL;
	int r = add(text, entry, &with, &why);

	(void)!remove(text, entry, &again, &why);
	if (r < 0) {
		assert(r == -EEXIST || (r == -EINVAL && why));
		return;
	}
	again.len = 0;
	assert(add(&with, entry, &again, &why) == -EEXIST);
	assert(remove(&with, entry, &without, &why) == 0);
	squeeze(text, &a);
	squeeze(&without, &b);
	/* the group may be new: it stays */
	assert(b.len >= a.len);
	assert(b.len > a.len || !a.len || memcmp(a.data, b.data, a.len) == 0);
	again.len = 0;
	assert(remove(&without, entry, &again, &why) == -ENOENT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_strv words = { 0 };
	auto_buf text = { 0 };
	struct config_entry json = { "mcpServers", "ward", &words, true },
			    toml = { "mcp_servers", "ward", &words, false };

	strv_add(&words, "/usr/bin/ward");
	strv_add(&words, "a\"b\\c\n");
	buf_add(&text, data, n);
	try(&text, &json, config_json_add, config_json_remove);
	try(&text, &toml, config_toml_add, config_toml_remove);
	return 0;
}
