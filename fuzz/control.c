/* Fuzzes the control socket's messages, what is said back, and the register's entries. */
#include <assert.h>
#include <string.h>

#include "control/control.h"
#include "state/boxes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A request that passed has the strings that it promises, each ended inside. */
static void walk_exec(const uint8_t *data, size_t n)
{
	const char *at = (const char *)data + sizeof(struct control_message),
		   *end = (const char *)data + n;
	struct control_message m;

	memcpy(&m, data, sizeof(m));
	if (m.op != CONTROL_EXEC)
		return;
	for (int32_t i = 0; i < 1 + m.a + m.b; i++) {
		assert(at < end);
		at += strnlen(at, (size_t)(end - at)) + 1;
	}
	assert(at == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct box_info info = { 0 };
	struct control_message m = { 0 };

	if (control_check_request(data, n) == 0)
		walk_exec(data, n);
	if (control_check_answer(data, n) == 0) {
		struct ward_err e = { 0 };
		auto_buf again = { 0 };

		memcpy(&m, data, sizeof(m));
		if (m.op == CONTROL_ERROR) {
			control_read_error(data, n, &e);
			assert(e.code > 0);
			control_write_error(&e, &again);
			assert(control_check_answer(again.data, again.len) == 0);
		}
		if (m.op == CONTROL_NET)
			assert(control_net_rows(data, n) <= CONTROL_NET_ROWS);
	}
	if (boxes_parse((const char *)data, n, &info) == 0) {
		assert(!info.name[0] || boxes_is_name(info.name));
		box_info_clear(&info);
	}
	return 0;
}
