/* Fuzzes names and addresses: what is read is canonical, and reading the canonical form gives the
 * same. */
#include <assert.h>
#include <string.h>

#include "policy/hostname.h"
#include "policy/idna.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct host *h)
{
	char text[HOST_TEXT];
	struct host again;

	assert(h->kind == HOST_NAME || h->kind == HOST_ADDRESS);
	if (h->kind == HOST_NAME) {
		assert(h->len && h->len <= HOSTNAME_MAX && strlen(h->name) == h->len &&
		       h->name[h->len - 1] != '.');
		for (size_t i = 0; i < h->len; i++)
			assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", h->name[i]));
	} else {
		assert(h->ip.family == 4 || h->ip.family == 6);
		assert(!h->len && !h->name[0]);
	}
	host_text(h, text);
	assert(host_read(text, strlen(text), &again) == HOST_FINE && host_equal(h, &again));
}

/* An A-label is ASCII, and stays itself. */
static void check_idna(const uint8_t *data, size_t n)
{
	char text[300], out[256], again[256];

	if (n >= sizeof(text))
		return;
	memcpy(text, data, n);
	text[n] = '\0';
	if (idna_to_ascii(text, out, sizeof(out)))
		return;
	for (const char *c = out; *c; c++)
		assert((unsigned char)*c < 0x80);
	assert(!idna_to_ascii(out, again, sizeof(again)) && strcmp(out, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct host h;
	uint16_t port;

	check_idna(data, n);
	if (host_read((const char *)data, n, &h) == HOST_FINE)
		check(&h);
	else
		assert(h.kind == HOST_NONE);
	if (host_read_port((const char *)data, n, &h, &port) == HOST_FINE)
		check(&h);
	return 0;
}
