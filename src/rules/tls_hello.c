/*
 * A ClientHello, byte by byte. In: the content of handshake records, cut anywhere. Out: the one
 * name in it, whether it hides another, or what is wrong. A field machine: each state is a field of
 * known size; when its last byte has come, step() says what follows. Every length is held against
 * what is left of the message before it is believed, and lists must fill their frame exactly, so
 * nothing can be read two ways. Constant memory, no allocation; run by the gateway's parsing
 * process. Fuzzed (fuzz/hello.c).
 */
#include <string.h>

#include "rules/tls_hello.h"

enum { EXT_SERVER_NAME = 0, EXT_ALPN = 16, EXT_ECH = 0xfe0d, EXT_ESNI = 0xffce };

enum state {
	TYPE,
	LENGTH,
	VERSION,
	RANDOM,
	SESSION_LENGTH,
	SESSION,
	CIPHERS_LENGTH,
	CIPHERS,
	COMPRESSION_LENGTH,
	COMPRESSION,
	EXTENSIONS_LENGTH,
	EXTENSION_TYPE,
	EXTENSION_LENGTH,
	EXTENSION,
	NAMES_LENGTH,
	NAME_TYPE,
	NAME_LENGTH,
	NAME,
	PROTOCOLS_LENGTH,
	PROTOCOL_LENGTH,
	PROTOCOL
};

static void refuse(struct tls_hello *h, enum tls_hello_wrong wrong)
{
	h->wrong = (uint8_t)wrong;
}

static void step(struct tls_hello *h);

/* The next field, of size bytes; an empty one is over at once. */
static void enter(struct tls_hello *h, enum state state, uint32_t size)
{
	if (size > h->left) {
		refuse(h, TLS_HELLO_OLD);
		return;
	}
	h->state = (uint8_t)state;
	h->field = size;
	h->number = 0;
	if (!size)
		step(h);
}

static void finish(struct tls_hello *h)
{
	h->done = true;
	if (h->has_ech)
		refuse(h, TLS_HELLO_HIDDEN);
	else if (!h->has_name)
		refuse(h, TLS_HELLO_NO_NAME);
}

static void next_extension(struct tls_hello *h)
{
	if (h->left)
		enter(h, EXTENSION_TYPE, 2);
	else
		finish(h);
}

/* The length of an extension has come: what is inside? */
static void enter_extension(struct tls_hello *h)
{
	uint32_t size = h->number;

	h->inner = (uint16_t)size;
	if (size > h->left) {
		refuse(h, TLS_HELLO_OLD);
	} else if (h->type == EXT_SERVER_NAME) {
		if (h->has_name || size < 6) /* a list with one name of one character */
			refuse(h, TLS_HELLO_OLD);
		else
			enter(h, NAMES_LENGTH, 2);
	} else if (h->type == EXT_ALPN) {
		if (h->has_alpn || size < 4)
			refuse(h, TLS_HELLO_OLD);
		else
			enter(h, PROTOCOLS_LENGTH, 2);
	} else {
		h->has_ech |= h->type == EXT_ECH || h->type == EXT_ESNI;
		enter(h, EXTENSION, size);
	}
}

/* Server name: exactly one name, of type host_name, which fills the extension. */
static void step_name(struct tls_hello *h)
{
	switch (h->state) {
	case NAMES_LENGTH:
		if (h->number != h->inner - 2u)
			refuse(h, TLS_HELLO_OLD);
		else
			enter(h, NAME_TYPE, 1);
		break;
	case NAME_TYPE:
		if (h->number != 0)
			refuse(h, TLS_HELLO_OLD);
		else
			enter(h, NAME_LENGTH, 2);
		break;
	case NAME_LENGTH:
		if (h->number != h->inner - 5u || h->number > TLS_HELLO_NAME_MAX)
			refuse(h, TLS_HELLO_OLD);
		else
			enter(h, NAME, h->number);
		break;
	default:
		h->has_name = true;
		next_extension(h);
	}
}

static void step_protocol(struct tls_hello *h)
{
	switch (h->state) {
	case PROTOCOLS_LENGTH:
		if (h->number != h->inner - 2u) {
			refuse(h, TLS_HELLO_OLD);
			break;
		}
		h->inner = (uint16_t)h->number;
		enter(h, PROTOCOL_LENGTH, 1);
		break;
	case PROTOCOL_LENGTH:
		if (!h->number || h->number + 1 > h->inner) {
			refuse(h, TLS_HELLO_OLD);
			break;
		}
		h->inner = (uint16_t)(h->inner - h->number - 1);
		h->proto_len = 0;
		enter(h, PROTOCOL, h->number);
		break;
	default:
		h->offers_h2 |= h->proto_len == 2 && memcmp(h->proto, "h2", 2) == 0;
		h->has_alpn = true;
		if (h->inner)
			enter(h, PROTOCOL_LENGTH, 1);
		else
			next_extension(h);
	}
}

/* The part in front of the extensions. */
static void step_front(struct tls_hello *h)
{
	bool fine = true;

	switch (h->state) {
	case TYPE:
		fine = h->number == 1;
		enter(h, LENGTH, 3);
		break;
	case LENGTH:
		if (h->number > TLS_HELLO_MAX)
			refuse(h, TLS_HELLO_LARGE);
		h->left = h->number;
		enter(h, VERSION, 2);
		break;
	case VERSION:
		fine = h->number >> 8 == 3;
		enter(h, RANDOM, 32);
		break;
	case RANDOM:
		enter(h, SESSION_LENGTH, 1);
		break;
	case SESSION_LENGTH:
		fine = h->number <= 32;
		enter(h, SESSION, h->number);
		break;
	case SESSION:
		enter(h, CIPHERS_LENGTH, 2);
		break;
	case CIPHERS_LENGTH:
		fine = h->number >= 2 && h->number % 2 == 0;
		enter(h, CIPHERS, h->number);
		break;
	case CIPHERS:
		enter(h, COMPRESSION_LENGTH, 1);
		break;
	default: /* COMPRESSION_LENGTH */
		fine = h->number >= 1;
		enter(h, COMPRESSION, h->number);
		break;
	}
	if (!fine)
		refuse(h, TLS_HELLO_OLD);
}

/* The last byte of a field has come. */
static void step(struct tls_hello *h)
{
	if (h->state < COMPRESSION) {
		step_front(h);
	} else if (h->state >= PROTOCOLS_LENGTH) {
		step_protocol(h);
	} else if (h->state >= NAMES_LENGTH) {
		step_name(h);
	} else if (h->state == COMPRESSION) {
		if (h->left)
			enter(h, EXTENSIONS_LENGTH, 2);
		else
			finish(h);
	} else if (h->state == EXTENSIONS_LENGTH) {
		if (h->number != h->left)
			refuse(h, TLS_HELLO_OLD);
		else
			next_extension(h);
	} else if (h->state == EXTENSION_TYPE) {
		h->type = (uint16_t)h->number;
		enter(h, EXTENSION_LENGTH, 2);
	} else if (h->state == EXTENSION_LENGTH) {
		enter_extension(h);
	} else {
		next_extension(h);
	}
}

void tls_hello_init(struct tls_hello *h)
{
	memset(h, 0, sizeof(*h));
	h->left = 4;
	enter(h, TYPE, 1);
}

static bool is_skipped(uint8_t state)
{
	return state == RANDOM || state == SESSION || state == CIPHERS || state == COMPRESSION ||
	       state == EXTENSION;
}

static void take_protocol(struct tls_hello *h, char byte)
{
	if (h->proto_len < sizeof(h->proto))
		h->proto[h->proto_len] = byte;
	h->proto_len++;
}

size_t tls_hello_take(struct tls_hello *h, const uint8_t *bytes, size_t n)
{
	size_t used = 0;

	while (used < n && !h->done && !h->wrong) {
		uint32_t some = 1;

		if (is_skipped(h->state))
			some = n - used < h->field ? (uint32_t)(n - used) : h->field;
		else if (h->state == NAME)
			h->name[h->name_len++] = (char)bytes[used];
		else if (h->state == PROTOCOL)
			take_protocol(h, (char)bytes[used]);
		else
			h->number = h->number << 8 | bytes[used];
		h->begun = true;
		used += some;
		h->left -= some;
		h->field -= some;
		if (!h->field)
			step(h);
	}
	return used;
}
