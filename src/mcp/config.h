/* Configuration files of MCP clients: one entry more, one less, and not a byte else. JSON and TOML;
 * what cannot be read in one way only is refused. Pure functions, fuzzed (fuzz/mcp_config.c). */
#ifndef WARD_MCP_CONFIG_H
#define WARD_MCP_CONFIG_H

#include "base/buf.h"

#define CONFIG_BYTES_MAX (4u << 20)

/* How an entry is called. */
struct config_entry {
	const char *group, *name; /* "mcpServers", "ward"; plain: letters, digits, _ and - */
	const struct strv *words; /* of the command line */
	bool type;                /* with "type": "stdio" */
};

/* Appends the text with the entry in it. 0; -EEXIST: the group has one of that name; -EINVAL with
 * *ret_why: the text cannot be read, or its group is no table. An empty text is an empty file. */
must_check int config_json_add(const struct buf *text, const struct config_entry *entry,
			       struct buf *out, const char **ret_why);
must_check int config_toml_add(const struct buf *text, const struct config_entry *entry,
			       struct buf *out, const char **ret_why);
/* Appends the text without the entry; words are not used. -ENOENT: there is none. */
must_check int config_json_remove(const struct buf *text, const struct config_entry *entry,
				  struct buf *out, const char **ret_why);
must_check int config_toml_remove(const struct buf *text, const struct config_entry *entry,
				  struct buf *out, const char **ret_why);

#endif
