/*
 * Base64, as JSON carries bytes. In: bytes, or text of a client. Out: the other of the two; text
 * that is none is refused. Run by ward-envd in the sandbox, and by wardd for signatures. Pure.
 */
#include "envd/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_write(const void *bytes, size_t n, struct buf *out)
{
	const uint8_t *b = bytes;

	if (!buf_reserve(out, (n + 2) / 3 * 4 + 1))
		return;
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) |
			     (i + 2 < n ? b[i + 2] : 0);
		char *to = out->data + out->len;

		to[0] = letters[v >> 18];
		to[1] = letters[v >> 12 & 63];
		to[2] = i + 1 < n ? letters[v >> 6 & 63] : '=';
		to[3] = i + 2 < n ? letters[v & 63] : '=';
		out->len += 4;
	}
	out->data[out->len] = '\0';
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool base64_read(const char *text, size_t n, struct buf *out)
{
	uint32_t bits = 0;
	unsigned have = 0;

	for (unsigned i = 0; i < 2 && n && text[n - 1] == '='; i++)
		n--;
	if (n % 4 == 1 || !buf_reserve(out, n / 4 * 3 + 4))
		return false;
	for (size_t i = 0; i < n; i++) {
		int v = value_of(text[i]);

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out->data[out->len++] = (char)(bits >> have & 0xff);
		}
	}
	out->data[out->len] = '\0';
	return true;
}
