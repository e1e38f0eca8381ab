/* The rows of tables/tools.def as data. Private to src/tools. */
#ifndef WARD_TOOLS_TABLE_H
#define WARD_TOOLS_TABLE_H

#include "tools/tools.h"

enum tools_object {
#define OBJECT(name, help) OBJECT_##name,
#include "tools.def"
	TOOLS_OBJECTS
};

enum tools_type {
	KEY_TEXT,
	KEY_ENUM,
	KEY_BOOL,
	KEY_SAID,
	KEY_UINT,
	KEY_SIZE,
	KEY_CPUS,
	KEY_SECONDS,
	KEY_STRINGS,
	KEY_RULES,
	KEY_JSON,
	KEY_SCALAR,
	KEY_PAIRS,
	KEY_MAP,
	KEY_LIST,
	KEY_PART
};

struct tools_key {
	enum tools_object object;
	enum tools_type type;
	bool required;
	size_t offset; /* of the member in the object's struct */
	const char *name, *values, *fallback;
};

/* The next key of the object behind key (NULL: the first); NULL at the end. */
const struct tools_key *tools_next_key(enum tools_object object, const struct tools_key *key);
/* The object of a MAP, LIST or PART, and how large its struct is. */
enum tools_object tools_object_of(const struct tools_key *key);
size_t tools_object_size(enum tools_object object);
/* Fills in the defaults of the object; frees all that it holds. */
void tools_object_init(enum tools_object object, void *ret);
void tools_object_clear(enum tools_object object, void *what);

/* What the reader checks beyond single values: src/tools/sound.c. */
struct tools_context {
	struct reader *r;
	struct tools *t;
};
void tools_check_sound(struct tools_context *c);

#endif
