/*
 * One line of QMP. In: bytes of QEMU's, which a guest may have taken over. Out: what kind of
 * message it is, and the two texts that are used here, cut to their size. Nothing else of it is
 * kept. A pure function.
 */
#include <string.h>

#include "rules/json_in.h"
#include "vm/qmp.h"

static void keep(struct json_in *j, char *out, size_t size)
{
	auto_buf text = { 0 };

	json_in_string(j, &text);
	if (!j->bad && !text.failed)
		snprintf(out, size, "%s", buf_text(&text));
}

/* The member of an object that has this name, into out; everything else is passed over. */
static void read_member(struct json_in *j, const char *name, char *out, size_t size)
{
	struct json_level l;
	const char *key;

	if (json_in_peek(j) != '{' || !json_in_open(j, '{', &l)) {
		json_in_skip(j);
		return;
	}
	while (json_in_next(j, &l, &key))
		if (strcmp(key, name) == 0 && json_in_peek(j) == '"')
			keep(j, out, size);
		else
			json_in_skip(j);
}

static void read_message(struct json_in *j, struct qmp_line *ret)
{
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l)) {
		j->bad = true;
		return;
	}
	while (json_in_next(j, &l, &key)) {
		if (strcmp(key, "return") == 0) {
			ret->kind = QMP_RETURN;
			read_member(j, "status", ret->status, sizeof(ret->status));
		} else if (strcmp(key, "error") == 0) {
			ret->kind = QMP_ERROR;
			read_member(j, "desc", ret->text, sizeof(ret->text));
		} else if (strcmp(key, "event") == 0 && json_in_peek(j) == '"') {
			ret->kind = QMP_EVENT;
			keep(j, ret->text, sizeof(ret->text));
		} else {
			ret->kind = strcmp(key, "QMP") == 0 ? QMP_GREETING : ret->kind;
			json_in_skip(j);
		}
	}
}

bool qmp_read(const uint8_t *bytes, size_t n, struct qmp_line *ret)
{
	struct json_in j;
	bool fine;

	*ret = (struct qmp_line){ .kind = QMP_OTHER };
	if (n > QMP_LINE_MAX || !json_in_utf8(bytes, n))
		return false;
	json_in_init(&j, bytes, n);
	read_message(&j, ret);
	fine = !j.bad && json_in_end(&j);
	json_in_free(&j);
	return fine;
}
