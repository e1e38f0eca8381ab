/* Fuzzes multipart/form-data: however the body is cut, the same parts come out. The first byte says
 * where it is cut. */
#include <assert.h>
#include <string.h>

#include "envd/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_all(const uint8_t *data, size_t n, size_t step, struct buf *out)
{
	struct multipart m;
	enum multipart_what what;
	bool fine = multipart_init(&m, "multipart/form-data; boundary=\"B\"");

	assert(fine);
	for (size_t at = 0;; at += step) {
		const char *bytes = NULL;
		size_t some = 0;

		while ((what = multipart_next(&m, &bytes, &some)) != MULTIPART_MORE &&
		       what != MULTIPART_DONE && what != MULTIPART_WRONG) {
			if (what == MULTIPART_DATA)
				buf_add(out, bytes, some);
			if (what == MULTIPART_PART)
				buf_printf(out, "[%s|%s]", m.name ? m.name : "",
					   m.filename ? m.filename : "");
		}
		if (what != MULTIPART_MORE || at >= n)
			break;
		multipart_feed(&m, data + at, n - at < step ? n - at : step);
	}
	buf_printf(out, what == MULTIPART_DONE ? "." : "!");
	multipart_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf whole = { 0 }, cut = { 0 };
	struct multipart m;
	auto_buf type = { 0 };

	if (!n || n > 4096)
		return 0;
	buf_add(&type, data, n);
	buf_add(&type, "", 1);
	if (multipart_init(&m, type.data))
		assert(m.boundary_len <= MULTIPART_BOUNDARY_MAX + 4);
	multipart_free(&m);
	read_all(data + 1, n - 1, n, &whole);
	read_all(data + 1, n - 1, 1 + data[0] % 16, &cut);
	/* a body that is wrong may show its wrongness before or behind bytes of a part */
	if (whole.data[whole.len - 1] == '.')
		assert(whole.len == cut.len && memcmp(whole.data, cut.data, cut.len) == 0);
	else
		assert(cut.data[cut.len - 1] == '!');
	return 0;
}
